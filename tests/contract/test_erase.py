"""Erasing a session: what it held is gone, that it was there can still be proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import takewhile
from typing import Any

import grpc
from foldlog.v1 import service_pb2

from tests.contract.attachments import got, looking, put, stored
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.refusal import refusal_of, refused
from tests.contract.said import assistant, batches, custom, header, user
from tests.served import Served


def audited(log: Calls) -> Any:
    """Verify a session that may be deleted."""
    request = service_pb2.VerifySessionRequest(session_id=log.session_id, include_deleted=True)
    return log.stub.VerifySession(request, timeout=DEADLINE_S)


def listed(stub: Any, **fields: Any) -> set[str]:
    request = service_pb2.ListSessionsRequest(**fields)
    return {each.session_id for each in stub.ListSessions(request, timeout=DEADLINE_S).sessions}


def test_an_erased_session_is_gone_and_its_id_too(log: Calls) -> None:
    log.append(user("a"))
    answer = log.erase(reason="asked for")
    assert (answer.next_seq, list(answer.erased_session_ids)) == (1, [log.session_id])
    calls: list[Callable[[], Any]] = [
        log.get,
        log.fold,
        log.events,
        log.export,
        log.snapshot,
        log.fork,
        lambda: log.append(user("b")),
        lambda: log.update(set_labels={"a": "b"}),
        lambda: Calls.create(log.stub, log.session_id),
        lambda: log.other(log.session_id).verify(),
    ]
    for call in calls:
        with refused("SESSION_DELETED", session_id=log.session_id):
            call()
    assert log.session_id not in listed(log.stub)


def test_an_erased_session_is_still_verified(log: Calls) -> None:
    log.append(user("a"), header(system_prompt="b" * 5_000), custom("kind", b"c", "key"))
    log.update(set_labels={"a": "1"})
    log.snapshot()
    before = log.verify()
    log.erase()
    after = audited(log)
    assert after.intact, after.faults
    assert after.row_count == before.row_count + 3
    assert after.next_seq == before.next_seq


def test_a_chain_that_was_seen_before_is_the_same_after(log: Calls) -> None:
    log.append(user("a"), user("b"))
    request = service_pb2.VerifySessionRequest(
        session_id=log.session_id, versions=[1, 2, 3], include_deleted=True
    )
    before = log.stub.VerifySession(request, timeout=DEADLINE_S)
    log.erase()
    after = log.stub.VerifySession(request, timeout=DEADLINE_S)
    assert len(before.chains) == 3
    assert list(after.chains) == list(before.chains)


def test_erasing_again_is_no_error_and_a_deleted_session_can_be_erased(log: Calls) -> None:
    log.append(user("a"))
    log.delete()
    first = log.erase(request_id="r")
    assert log.erase(request_id="r").next_seq == first.next_seq == 1
    assert log.erase().next_seq == 1
    with refused("REQUEST_ID_REUSED"):
        log.erase(request_id="r", reason="another")
    with refused("SESSION_NOT_FOUND"):
        log.other(fresh_id()).erase()


def test_erasing_it_many_times_at_once_is_erasing_it_once(log: Calls) -> None:
    log.append(user("a"))
    with ThreadPoolExecutor(8) as pool:
        answers = [*pool.map(lambda _: log.erase(), range(8))]
    assert [each.next_seq for each in answers] == [1] * 8
    assert audited(log).version == 5  # created, a, begun, deleted, erased


def test_an_audit_during_an_erasure_finds_nothing(log: Calls) -> None:
    log.update(set_labels={"a": "1"})
    for batch in batches([custom("kind", b"b", f"key {i}") for i in range(1_200)]):
        log.append(*batch)
    with ThreadPoolExecutor(1) as pool:
        erasing = pool.submit(log.erase)
        audits = [audited(log)]
        while not erasing.done():
            audits.append(audited(log))
        erasing.result()
    assert [list(each.faults) for each in [*audits, audited(log)] if not each.intact] == []


def test_a_session_that_forks_read_is_refused_and_goes_on(log: Calls) -> None:
    log.append(user("a"))
    child = log.fork()
    grandchild = child.fork()
    unrelated = log.fork(-1)
    with refused(
        "HAS_FORKS", session_ids="\n".join(sorted([child.session_id, grandchild.session_id]))
    ):
        log.erase(request_id="r")
    log.append(user("b"))
    again = log.fork()
    assert again.texts() == ["a", "b"]
    for each in (grandchild, child, again):
        each.delete()
    assert list(log.erase(request_id="r").erased_session_ids) == [log.session_id]
    assert unrelated.append(user("still there")).first_seq == 0
    assert unrelated.verify().intact


def test_forks_are_erased_with_it_children_first(log: Calls) -> None:
    log.append(user("a"))
    child = log.fork()
    child.append(user("b"))
    grandchild = child.fork()
    grandchild.append(user("c"))
    parent_of_none = Calls.create(log.stub)
    erased = list(log.erase(include_forks=True).erased_session_ids)
    assert erased == [grandchild.session_id, child.session_id, log.session_id]
    for each in (log, child, grandchild):
        assert audited(each).intact
        with refused("SESSION_DELETED"):
            each.get()
    assert parent_of_none.append(user("x")).first_seq == 0


def test_a_child_is_erased_and_its_parent_stays(log: Calls) -> None:
    log.append(user("a"))
    child = log.fork()
    child.append(user("b"))
    child.erase()
    assert log.texts() == ["a"]
    assert (log.verify().intact, audited(child).intact) == (True, True)


def test_a_watch_is_told_and_ends(log: Calls) -> None:
    log.append(user("a"))
    request = service_pb2.WatchEventsRequest(session_id=log.session_id)
    watch: Iterator[Any] = log.stub.WatchEvents(request, timeout=DEADLINE_S)
    for item in watch:
        if item.HasField("caught_up"):
            break
    log.erase()
    assert [item.WhichOneof("kind") for item in watch][-1] == "deleted"


def test_the_feed_tells_who_was_erased_and_why(log: Calls) -> None:
    log.append(user("the secret"), header(system_prompt="the secret " * 500))
    log.erase(reason="asked for")
    watch = log.stub.WatchAllEvents(service_pb2.WatchAllEventsRequest(), timeout=DEADLINE_S)
    seen = []
    for item in watch:
        if item.HasField("caught_up"):
            break
        if item.session_id == log.session_id:
            seen.append(item)
    assert seen[-1].fact.erased.reason == "asked for"
    assert b"the secret" not in b"".join(each.SerializeToString() for each in seen)
    assert [each.event.dropped for each in seen if each.HasField("event")] == [True, True]


def test_custom_terms_labels_and_dispatched_calls_are_gone_from_listings(stub: Any) -> None:
    log = Calls.create(stub, labels={"erase": fresh_id()})
    labels = dict(log.get().labels)
    kind = fresh_id("kind")
    log.append(custom(kind, b"", "key"))
    assert listed(stub, custom_kind=kind) == listed(stub, labels=labels) == {log.session_id}
    log.erase()
    assert listed(stub, custom_kind=kind) == listed(stub, labels=labels) == set()


def test_attachments_that_nothing_else_names_go_with_it(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, FOLDLOG_OBJECT_GRACE_S="0", FOLDLOG_OBJECT_INLINE_BYTES="1000")
    log, other = Calls.create(served.stub), Calls.create(served.stub)
    mine, large, shared = (
        put(served.stub, data).sha256 for data in (b"mine", b"m" * 5_000, b"shared")
    )
    log.append(looking(mine, large, shared), header(system_prompt="prompt " * 500))
    other.append(looking(shared))
    answer = log.erase()
    assert (answer.erased_attachment_count, answer.pending_attachment_count) == (3, 0)
    assert stored(served.stub, mine, large, shared) == {shared: 6}
    assert got(served.stub, shared) == b"shared"
    assert (other.verify().intact, audited(log).intact) == (True, True)
    watch = served.stub.WatchAllEvents(service_pb2.WatchAllEventsRequest(), timeout=DEADLINE_S)
    told = [*takewhile(lambda item: not item.HasField("caught_up"), watch)]
    assert len([item for item in told if item.session_id == log.session_id]) == 6


def test_within_the_grace_attachments_are_still_to_go(log: Calls) -> None:
    digest = put(log.stub, fresh_id().encode()).sha256
    log.append(looking(digest))
    answer = log.erase()
    assert (answer.erased_attachment_count, answer.pending_attachment_count) == (0, 1)


def test_an_export_made_before_is_imported_under_another_id(log: Calls) -> None:
    log.append(user("a"))
    data = log.export()
    log.erase()
    with refused("SESSION_DELETED"):
        imported(log.stub, data, session_id=log.session_id)
    again = imported(log.stub, data, session_id=fresh_id()).session.session_id
    assert log.other(again).texts() == ["a"]


def test_a_long_session_with_a_checkpoint_is_erased_whole(log: Calls) -> None:
    for batch in batches([user(f"message {i}") for i in range(1_300)]):
        log.append(*batch)
    log.fold()
    log.erase()
    assert audited(log).intact


def test_of_writers_and_forks_at_once_each_is_told_and_nothing_is_left_over(log: Calls) -> None:
    """Forks fail, or hinder the erasure by name; writers fail; an erased session has no forks."""
    log.append(user("a"))

    def outcome(call: Callable[[], Any], refusal: str) -> bool:
        """Tell whether a call succeeded; if not, it was refused so."""
        try:
            call()
        except grpc.RpcError as error:
            refusals.append((refusal, refusal_of(error).reason))
            return False
        return True

    refusals: list[tuple[str, str]] = []
    children = [f"{log.session_id}-{i}" for i in range(5)]

    with ThreadPoolExecutor(12) as threads:
        erasures = [threads.submit(outcome, log.erase, "HAS_FORKS") for _ in range(2)]
        forks = [
            threads.submit(outcome, partial(log.fork, child=child), "SESSION_DELETED")
            for child in children
        ]
        for i in range(5):
            threads.submit(outcome, partial(log.append, assistant(str(i))), "SESSION_DELETED")
        is_erased = any([each.result() for each in erasures])
        made = [child for child, each in zip(children, forks, strict=True) if each.result()]
    assert [expected for expected, _ in refusals] == [found for _, found in refusals]
    if is_erased:
        assert made == []
        assert audited(log).intact
    for child in made:
        assert log.other(child).texts()[0] == "a"
        assert log.other(child).verify().intact
