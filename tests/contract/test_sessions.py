"""Creating, reading, changing, listing and deleting sessions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from foldlog.v1 import service_pb2

from tests.contract.calls import Calls, fresh_id
from tests.contract.refusal import refused
from tests.contract.said import custom, user

NewLog = Callable[..., Calls]
Call = Callable[[], object]


def listed(stub: Any, page_size: int = 0, **filters: Any) -> list[str]:
    """Return the ids of all sessions that match, page by page."""
    request = service_pb2.ListSessionsRequest(page_size=page_size, **filters)
    ids = []
    while True:
        page = stub.ListSessions(request)
        ids += [each.session_id for each in page.sessions]
        if not page.next_page_token:
            return ids
        request.page_token = page.next_page_token


def test_a_new_session_is_empty_and_has_what_it_was_given(stub: Any) -> None:
    session_id = fresh_id()
    metadata = '{"n": 1.0,  "big":9007199254740993}'
    log = Calls.create(stub, session_id, labels={"a": "1"}, metadata_json=metadata)
    session = log.get()
    assert session.session_id == session_id
    assert dict(session.labels) == {"a": "1"}
    assert session.metadata_json == metadata
    assert (session.next_seq, session.writer_epoch, session.whole_from_seq) == (0, 0, 0)
    assert session.create_time.seconds > 1_600_000_000
    assert not session.HasField("parent")
    assert not session.HasField("open_turn_seq")


@pytest.mark.parametrize(
    "session_id",
    ["/", "a b\n\t", "zoë", "zoe\u0308", "🧩", "x" * 400, "é" * 200, "..", "%00", "'; --"],
)
def test_an_id_is_taken_as_it_is(stub: Any, session_id: str) -> None:
    unique = session_id + fresh_id("")
    log = Calls.create(stub, unique)
    log.append(user("hi"))
    assert log.get().session_id == unique
    assert log.texts() == ["hi"]


def test_an_id_of_the_longest_length_is_taken(stub: Any) -> None:
    longest = fresh_id().ljust(512, "x")
    assert Calls.create(stub, longest).get().session_id == longest


def test_an_id_that_is_too_long_is_refused(stub: Any) -> None:
    with refused("TOO_LARGE", size=514, limit=512):
        Calls.create(stub, "é" * 257)


def test_an_id_with_nul_is_refused(stub: Any) -> None:
    with refused("INVALID_FIELD") as told:
        Calls.create(stub, "a\0b")
    assert told.fields
    assert list(told.fields) == ["session_id"]


@pytest.mark.parametrize("method", ["GetSession", "GetLineage", "VerifySession", "DeleteSession"])
def test_a_call_without_an_id_names_the_field(stub: Any, method: str) -> None:
    request = getattr(service_pb2, f"{method}Request")()
    with refused("INVALID_FIELD") as told:
        getattr(stub, method)(request)
    assert list(told.fields or {}) == ["session_id"]


def test_without_an_id_the_server_makes_one(stub: Any) -> None:
    made = {Calls.create(stub, "").session_id for _ in range(3)}
    assert len(made) == 3
    assert all(made)


def test_a_made_id_follows_from_the_request_id(stub: Any) -> None:
    request_id = fresh_id("r")
    first = Calls.create(stub, "", request_id=request_id)
    again = Calls.create(stub, "", request_id=request_id)
    assert first.session_id == again.session_id
    assert Calls.create(stub, "", request_id=fresh_id("r")).session_id != first.session_id


def test_an_id_that_exists_is_refused(log: Calls) -> None:
    with refused("SESSION_EXISTS", session_id=log.session_id):
        Calls.create(log.stub, log.session_id)


def test_creating_again_under_one_request_id_gives_the_first_answer(stub: Any) -> None:
    session_id, request_id = fresh_id(), fresh_id("r")
    first = Calls.create(stub, session_id, request_id=request_id, labels={"a": "1"})
    first.append(user("hi"))
    again = Calls.create(stub, session_id, request_id=request_id, labels={"a": "1"})
    assert again.texts() == ["hi"]
    with refused("REQUEST_ID_REUSED", request_id=request_id):
        Calls.create(stub, session_id, request_id=request_id, labels={"a": "2"})


@pytest.mark.parametrize("metadata", ["{", "NaN", '{"a":1,"a":2}', '"\\ud800"', "1 2", "[1,]"])
def test_metadata_that_is_no_lossless_json_is_refused(stub: Any, metadata: str) -> None:
    with refused("INVALID_FIELD") as told:
        Calls.create(stub, metadata_json=metadata)
    assert list(told.fields or {}) == ["metadata_json"]


@pytest.mark.parametrize(
    ("labels", "size", "limit"),
    [
        ({str(i): "" for i in range(65)}, 65, 64),
        ({"k" * 257: ""}, 257, 256),
        ({"k": "v" * 257}, 257, 256),
    ],
    ids=["count", "key", "value"],
)
def test_labels_over_a_limit_are_refused(
    stub: Any, labels: dict[str, str], size: int, limit: int
) -> None:
    with refused("TOO_LARGE", size=size, limit=limit):
        Calls.create(stub, labels=labels)


def test_labels_at_the_limits_are_taken(stub: Any) -> None:
    labels = {str(i).rjust(256, "k"): "v" * 256 for i in range(64)}
    assert dict(Calls.create(stub, labels=labels).get().labels) == labels


def test_an_unknown_session_is_not_found(stub: Any) -> None:
    log = Calls(stub, fresh_id())
    reads: list[Call] = [log.get, log.fold, log.events, log.lineage, log.verify, log.export]
    writes: list[Call] = [log.delete, log.snapshot, log.open_writer, log.update]
    append: Call = partial(log.append, user("x"))
    for call in [*reads, *writes, append]:
        with refused("SESSION_NOT_FOUND", session_id=log.session_id):
            call()


def test_labels_and_metadata_can_be_changed(new_log: NewLog) -> None:
    log = new_log(labels={"a": "1", "b": "2"}, metadata_json="[1]")
    answer = log.update(set_labels={"b": "3", "c": "4"}, remove_labels=["a", "none"])
    assert dict(answer.session.labels) == {"b": "3", "c": "4"}
    assert log.get().metadata_json == "[1]"
    assert answer.next_seq == 0
    assert log.update(metadata_json='{"x":1.0}').session.metadata_json == '{"x":1.0}'
    assert log.update(metadata_json="").session.metadata_json == ""
    assert dict(log.get().labels) == {"b": "3", "c": "4"}


def test_a_change_over_a_limit_changes_nothing(new_log: NewLog) -> None:
    log = new_log(labels={str(i): "x" for i in range(64)})
    with refused("TOO_LARGE", size=65, limit=64):
        log.update(set_labels={"one more": ""})
    assert len(log.get().labels) == 64
    log.update(set_labels={"one more": ""}, remove_labels=["0"])
    assert len(log.get().labels) == 64


def test_a_write_moves_the_update_time(log: Calls) -> None:
    before = log.get()
    log.append(user("hi"))
    after = log.get()
    assert after.create_time == before.create_time
    assert after.update_time.ToNanoseconds() >= before.update_time.ToNanoseconds()
    assert after.update_time.ToNanoseconds() > before.create_time.ToNanoseconds()


def test_a_deleted_session_is_hidden_for_ever(log: Calls) -> None:
    log.append(user("hi"))
    assert log.delete().next_seq == 1
    assert log.delete().next_seq == 1
    calls: list[Call] = [log.get, log.fold, log.events, log.export, log.verify, log.snapshot]
    for call in calls:
        with refused("SESSION_DELETED", session_id=log.session_id):
            call()
    with refused("SESSION_DELETED"):
        log.append(user("x"))
    with refused("SESSION_DELETED"):
        log.fork()
    with refused("SESSION_DELETED"):
        log.check(user("x").body.message)
    with refused("SESSION_DELETED"):
        Calls.create(log.stub, log.session_id)


def test_a_listing_sees_what_was_just_written(new_log: NewLog) -> None:
    mark = fresh_id("label")
    made = [new_log(labels={"mark": mark}).session_id for _ in range(5)]
    assert listed(made and new_log().stub, labels={"mark": mark}) == made[::-1]


@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
def test_a_listing_pages_each_session_once_newest_first(new_log: NewLog, page_size: int) -> None:
    mark = fresh_id("label")
    logs = [new_log(labels={"mark": mark}) for _ in range(7)]
    ids = listed(logs[0].stub, page_size, labels={"mark": mark})
    assert ids == [each.session_id for each in logs][::-1]


def test_a_listing_filters_by_every_label_given(new_log: NewLog) -> None:
    mark = fresh_id("label")
    both = new_log(labels={"mark": mark, "x": "1"})
    new_log(labels={"mark": mark, "x": "2"})
    new_log(labels={"mark": mark})
    assert listed(both.stub, labels={"mark": mark, "x": "1"}) == [both.session_id]
    both.update(set_labels={"x": "3"})
    assert listed(both.stub, labels={"mark": mark, "x": "1"}) == []
    assert listed(both.stub, labels={"mark": mark, "x": "3"}) == [both.session_id]


def test_a_listing_filters_by_parent(log: Calls) -> None:
    log.append(user("hi"))
    children = [log.fork(0).session_id for _ in range(3)]
    log.other(children[0]).fork(0)
    assert listed(log.stub, parent_session_id=log.session_id) == children[::-1]


def test_a_listing_filters_by_time(new_log: NewLog) -> None:
    mark = fresh_id("label")
    first, second, third = (new_log(labels={"mark": mark}) for _ in range(3))
    middle = second.get().create_time
    labels = {"mark": mark}
    from_middle = listed(first.stub, labels=labels, created_from_time=middle)
    assert from_middle == [third.session_id, second.session_id]
    before = listed(first.stub, labels=labels, created_before_time=middle)
    assert before == [first.session_id]
    first.append(user("hi"))
    changed = first.get().update_time
    assert listed(first.stub, labels=labels, updated_from_time=changed) == [first.session_id]


def test_a_listing_filters_by_custom_key_and_kind_of_one_event(new_log: NewLog) -> None:
    key, kind = fresh_id("key"), fresh_id("kind")
    one, two, neither = new_log(), new_log(), new_log()
    one.append(custom(kind, b"\0\1", "other", key))
    two.append(custom(kind, b"", "other"), custom("another", b"", key))
    neither.append(custom("another"))
    assert listed(one.stub, custom_key=key) == [two.session_id, one.session_id]
    assert listed(one.stub, custom_kind=kind) == [two.session_id, one.session_id]
    assert listed(one.stub, custom_key=key, custom_kind=kind) == [one.session_id]


def test_listings_take_any_text(new_log: NewLog) -> None:
    odd = fresh_id("a\0é'%_\\🧩")
    log = new_log(labels={odd: odd})
    log.append(custom(odd, b"", odd), request_id=odd)
    child = log.fork(0, odd_id := fresh_id("é'%_\\🧩"))
    grandchild = child.fork(0)
    assert listed(log.stub, labels={odd: odd}) == [log.session_id]
    assert listed(log.stub, labels={odd: odd.upper()}) == []
    assert log.session_id in listed(log.stub, custom_key=odd, custom_kind=odd)
    assert listed(log.stub, custom_key=odd[:-1]) == []
    assert listed(log.stub, parent_session_id=odd_id) == [grandchild.session_id]
    assert listed(log.stub, parent_session_id="a\0") == []


def test_a_listing_by_a_time_out_of_range_is_refused(stub: Any) -> None:
    for field in ("created_from_time", "created_before_time", "updated_from_time"):
        with refused("INVALID_FIELD") as told:
            request = service_pb2.ListSessionsRequest()
            getattr(request, field).seconds = 2**60
            stub.ListSessions(request)
        assert list(told.fields or {}) == [field]


def test_an_empty_label_key_is_refused(stub: Any) -> None:
    with refused("INVALID_FIELD") as told:
        Calls.create(stub, labels={"": ""})
    assert list(told.fields or {}) == ["labels"]


def test_a_listing_leaves_out_deleted_sessions(new_log: NewLog) -> None:
    mark = fresh_id("label")
    kept, gone = (new_log(labels={"mark": mark}) for _ in range(2))
    gone.delete()
    assert listed(kept.stub, labels={"mark": mark}) == [kept.session_id]


def test_a_listed_session_is_as_get_shows_it(new_log: NewLog) -> None:
    mark = fresh_id("label")
    log = new_log(labels={"mark": mark}, metadata_json="[1.0]")
    log.append(user("a"), user("b"))
    child = log.fork(0, labels={"mark": mark})
    page = log.stub.ListSessions(service_pb2.ListSessionsRequest(labels={"mark": mark}))
    assert list(page.sessions) == [child.get(), log.get()]


@pytest.mark.parametrize(
    ("field", "fields"),
    [("page_token", {"page_token": "no such token"}), ("page_size", {"page_size": -1})],
)
def test_a_bad_page_is_refused(stub: Any, field: str, fields: dict[str, Any]) -> None:
    with refused("INVALID_FIELD") as told:
        stub.ListSessions(service_pb2.ListSessionsRequest(**fields))
    assert list(told.fields or {}) == [field]
