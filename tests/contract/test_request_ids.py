"""Retries: the first answer, however late, also after a restart."""

from __future__ import annotations

import pytest

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import Calls, fresh_id
from tests.contract.refusal import refused
from tests.contract.said import replacing, system, user
from tests.served import Served


def test_a_retry_gives_the_first_answer_and_writes_nothing(log: Calls) -> None:
    first = log.append(user("a"), user("b"), request_id="r")
    log.append(user("c"))
    assert log.append(user("a"), user("b"), request_id="r") == first
    assert log.texts() == ["a", "b", "c"]


def test_a_retried_replace_tells_again_what_it_shadowed(log: Calls) -> None:
    log.append(user("a"), user("b"))
    first = log.append(replacing(system("S"), 0, 1), request_id="r")
    log.append(replacing(system("T"), 0, 0))
    assert log.append(replacing(system("S"), 0, 1), request_id="r") == first
    assert list(first.replaces[0].shadowed_seqs) == [0, 1]


@pytest.mark.parametrize("other", ["body", "order", "count", "replace", "time"])
def test_the_same_id_with_other_content_is_refused(log: Calls, other: str) -> None:
    log.append(user("a"), user("b"), request_id="r")
    changed = {
        "body": [user("a"), user("B")],
        "order": [user("b"), user("a")],
        "count": [user("a")],
        "replace": [user("a"), replacing(user("b"), 0, 0)],
        "time": [user("a"), user("b", create_time=None)],
    }[other]
    if other == "time":
        changed[1].time.FromSeconds(5)
    with refused("REQUEST_ID_REUSED", request_id="r"):
        log.append(*changed, request_id="r")
    assert log.get().next_seq == 2


def test_an_id_is_shared_by_all_writes_of_a_session(log: Calls) -> None:
    log.append(user("a"), request_id="r")
    with refused("REQUEST_ID_REUSED"):
        log.rewind(-1, request_id="r")
    with refused("REQUEST_ID_REUSED"):
        log.update(set_labels={"a": "1"}, request_id="r")
    with refused("REQUEST_ID_REUSED"):
        log.open_writer(request_id="r")


def test_an_id_is_scoped_to_its_session(log: Calls) -> None:
    other = Calls.create(log.stub)
    log.append(user("a"), request_id="r")
    other.append(user("b"), request_id="r")
    child = log.fork()
    child.append(user("c"), request_id="r")
    assert (other.texts(), child.texts()) == (["b"], ["a", "c"])


def test_an_id_is_looked_up_before_expected_next_seq(log: Calls) -> None:
    first = log.append(user("a"), request_id="r", expected_next_seq=0)
    log.append(user("b"))
    assert log.append(user("a"), request_id="r", expected_next_seq=0) == first


def test_a_refused_write_leaves_its_id_free(log: Calls) -> None:
    log.append(user("a"))
    with refused("SEQ_CONFLICT"):
        log.append(user("b"), request_id="r", expected_next_seq=0)
    assert log.append(user("b"), request_id="r", expected_next_seq=1).first_seq == 1


def test_without_an_id_a_repeated_write_is_a_new_one(log: Calls) -> None:
    log.append(user("a"))
    log.append(user("a"))
    assert log.texts() == ["a", "a"]


def test_events_carry_the_id_once_per_call(log: Calls) -> None:
    log.append(user("a"), user("b"), request_id="r")
    log.append(user("c"))
    assert [each.request_id for each in log.events()] == ["r", "", ""]


def test_an_id_may_be_any_text_of_128_bytes(log: Calls) -> None:
    for request_id in ("é" * 64, "a b\n", "~x", "'; --", "🧩"):
        first = log.append(user(request_id), request_id=request_id)
        assert log.append(user(request_id), request_id=request_id) == first
    with refused("TOO_LARGE", size=129, limit=128):
        log.append(user("x"), request_id="x" * 129)


def test_updates_and_deletions_are_retried_too(log: Calls) -> None:
    first = log.update(set_labels={"a": "1"}, request_id="u")
    log.update(set_labels={"a": "2"})
    again = log.update(set_labels={"a": "1"}, request_id="u")
    assert again.next_seq == first.next_seq
    assert dict(log.get().labels) == {"a": "2"}
    gone = log.delete(request_id="d")
    assert log.delete(request_id="d") == gone


def test_two_retries_at_once_write_once(log: Calls) -> None:
    request = log.append_request(user("a"), request_id="r")
    answers = [log.stub.AppendEvents.future(request) for _ in range(20)]
    assert len({each.result(60).SerializeToString() for each in answers}) == 1
    assert log.texts() == ["a"]


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_a_retry_gives_the_first_answer_after_a_restart(log: Calls, served: Served) -> None:
    child, create, fork = fresh_id(), fresh_id("r"), fresh_id("r")
    made = Calls.create(log.stub, "", request_id=create)
    appended = log.append(user("a"), user("b"), request_id="a")
    replaced = log.append(replacing(system("S"), 0, 1), request_id="s")
    rewound = log.rewind(1, request_id="w")
    snapshot = log.snapshot(request_id="n")
    epoch = log.open_writer(request_id="e")
    forked = log.fork_answer(1, child, request_id=fork)
    served.restart()
    assert Calls.create(log.stub, "", request_id=create).session_id == made.session_id
    assert log.append(user("a"), user("b"), request_id="a") == appended
    assert log.append(replacing(system("S"), 0, 1), request_id="s") == replaced
    assert log.rewind(1, request_id="w") == rewound
    assert log.snapshot(request_id="n") == snapshot
    assert log.open_writer(request_id="e") == epoch
    assert log.fork_answer(1, child, request_id=fork).next_seq == forked.next_seq
    with refused("REQUEST_ID_REUSED"):
        log.append(user("z"), request_id="a")
    assert log.get().next_seq == 4


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_an_old_id_is_still_known(log: Calls, served: Served) -> None:
    first = log.append(user("first"), request_id="first")
    for i in range(600):
        log.append(user(str(i)), request_id=f"r{i}")
    assert log.append(user("first"), request_id="first") == first
    served.restart()
    assert log.append(user("first"), request_id="first") == first
    assert log.append(user("7"), request_id="r7").first_seq == 8
    assert log.get().next_seq == 601
