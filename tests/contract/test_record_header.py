"""RecordHeader: whether a header is owed, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from foldlog.v1 import event_pb2, service_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.requesting import CHANGE, HEADER, INITIAL, RESUME, record_header
from tests.contract.said import header, user

OTHER = event_pb2.RequestHeader(provider="p", model="m2")


def test_the_first_header_of_a_log_is_initial(log: Calls) -> None:
    log.append(user("u"))
    answer = record_header(log)
    assert (answer.wrote, answer.reason, answer.seq, answer.next_seq) == (True, INITIAL, 1, 2)
    stored = log.header_answer().header
    assert stored.reason == INITIAL
    stored.ClearField("reason")
    assert stored == HEADER


def test_an_equal_header_is_not_written_again(log: Calls) -> None:
    record_header(log)
    answer = record_header(log)
    assert (answer.wrote, answer.reason, answer.seq, answer.next_seq) == (False, 0, 0, 1)


def test_another_header_is_a_change(log: Calls) -> None:
    record_header(log)
    answer = record_header(log, OTHER)
    assert (answer.reason, answer.seq) == (CHANGE, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("provider", "other"),
        ("model", "other"),
        ("parameters_json", '{"temperature": 0}'),
        ("system_prompt", "Be long."),
        ("tools_json", ['{"name": "f"}']),
        ("reasoning_effort", "high"),
    ],
)
def test_a_difference_in_any_field_is_a_change(log: Calls, name: str, value: object) -> None:
    record_header(log)
    changed = event_pb2.RequestHeader()
    changed.CopyFrom(HEADER)
    changed.MergeFrom(event_pb2.RequestHeader(**{name: value}))  # type: ignore[arg-type]
    assert record_header(log, changed).reason == CHANGE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}'),
        ("{}", ""),
        ('{"a": "\\u0041"}', '{"a": "A"}'),
    ],
    ids=["key order", "empty is absent", "escapes"],
)
def test_equality_knows_json_not_bytes(log: Calls, one: str, other: str) -> None:
    record_header(log, event_pb2.RequestHeader(model="m", parameters_json=one))
    again = event_pb2.RequestHeader(model="m", parameters_json=other)
    assert not record_header(log, again).wrote
    assert log.header_answer().header.parameters_json == one


def test_the_order_of_tools_is_a_difference(log: Calls) -> None:
    tools = ['{"name": "f"}', '{"name": "g"}']
    record_header(log, event_pb2.RequestHeader(model="m", tools_json=tools))
    turned = event_pb2.RequestHeader(model="m", tools_json=tools[::-1])
    assert record_header(log, turned).reason == CHANGE


def test_the_reason_the_caller_gives_is_not_taken(log: Calls) -> None:
    given = event_pb2.RequestHeader(model="m", reason=RESUME)
    assert record_header(log, given).reason == INITIAL
    assert record_header(log, event_pb2.RequestHeader(model="m", reason=9)).wrote is False  # type: ignore[arg-type]


def test_each_writer_epoch_resumes_once_even_unchanged(log: Calls) -> None:
    record_header(log)
    for _ in range(2):
        epoch = log.open_writer().writer_epoch
        first = record_header(log, writer_epoch=epoch)
        assert (first.wrote, first.reason) == (True, RESUME)
        assert not record_header(log, writer_epoch=epoch).wrote
        assert record_header(log, OTHER, writer_epoch=epoch).reason == CHANGE
        assert record_header(log, writer_epoch=epoch).reason == CHANGE


def test_the_first_header_of_a_log_is_initial_in_an_epoch_too(log: Calls) -> None:
    epoch = log.open_writer().writer_epoch
    assert record_header(log, writer_epoch=epoch).reason == INITIAL
    assert not record_header(log, writer_epoch=epoch).wrote


def test_skip_unchanged_leaves_out_a_resume_that_changes_nothing(log: Calls) -> None:
    record_header(log)
    epoch = log.open_writer().writer_epoch
    assert not record_header(log, writer_epoch=epoch, skip_unchanged=True).wrote
    changed = record_header(log, OTHER, writer_epoch=epoch, skip_unchanged=True)
    assert changed.reason == RESUME


def test_no_epoch_no_resume(log: Calls) -> None:
    record_header(log)
    epoch = log.open_writer().writer_epoch
    record_header(log, writer_epoch=epoch)
    log.close_writer(writer_epoch=epoch)
    assert not record_header(log).wrote


def test_a_header_that_was_appended_counts(log: Calls) -> None:
    record_header(log)
    epoch = log.open_writer().writer_epoch
    log.append(header(model="m2"), writer_epoch=epoch)
    assert not record_header(log, event_pb2.RequestHeader(model="m2"), writer_epoch=epoch).wrote


def test_a_fork_starts_with_its_parents_header_and_no_epoch(log: Calls) -> None:
    record_header(log)
    epoch = log.open_writer().writer_epoch
    record_header(log, writer_epoch=epoch)
    child = log.fork()
    assert not record_header(child).wrote
    epoch = child.open_writer().writer_epoch
    assert record_header(child, writer_epoch=epoch).reason == RESUME


def test_a_rewind_behind_every_header_makes_the_next_initial(log: Calls) -> None:
    log.append(user("u"))
    record_header(log)
    record_header(log, OTHER)
    log.rewind(1)
    assert record_header(log, OTHER).reason == CHANGE
    log.rewind(0)
    assert record_header(log, OTHER).reason == INITIAL


def test_guards_hold(log: Calls) -> None:
    record_header(log)
    with refused("SEQ_CONFLICT", expected_next_seq=0, next_seq=1):
        record_header(log, OTHER, expected_next_seq=0)
    log.open_writer()
    with refused("WRITER_EPOCH_REQUIRED"):
        record_header(log)
    with refused("STALE_WRITER"):
        record_header(log, writer_epoch=7)


def test_a_retry_gets_the_first_answer(log: Calls) -> None:
    first = record_header(log, request_id="r")
    record_header(log, OTHER)
    again = record_header(log, request_id="r")
    assert (again.wrote, again.reason, again.seq) == (True, INITIAL, first.seq)
    with refused("REQUEST_ID_REUSED"):
        record_header(log, OTHER, request_id="r")


def test_malformed_headers_are_refused(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        record_header(log, event_pb2.RequestHeader(parameters_json='{"a": NaN}'))
    assert list(told.fields or {}) == ["header.parameters_json"]
    with refused("INVALID_FIELD") as told:
        log.stub.RecordHeader(service_pb2.RecordHeaderRequest(session_id=log.session_id))
    assert list(told.fields or {}) == ["header"]


def test_an_appended_header_with_an_unknown_reason_is_refused(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        log.append(header(model="m", reason=9))
    assert list(told.fields or {}) == ["events[0].body.request_header.reason"]
    event = event_pb2.Event(seq=0, body=header(model="m", reason=9).body)
    with refused("INVALID_FIELD") as told:
        log.restore(event)
    assert list(told.fields or {}) == ["events[0].body.request_header.reason"]


def test_a_session_that_is_not_there(new_log: Callable[..., Calls], log: Calls) -> None:
    with refused("SESSION_NOT_FOUND"):
        record_header(log.other("nowhere"))
    log.delete()
    with refused("SESSION_DELETED"):
        record_header(log)
