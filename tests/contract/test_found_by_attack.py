"""Faults that an attack found, each with what is right."""

from __future__ import annotations

import pytest
from foldlog.v1 import check_pb2, event_pb2

from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.refusal import refused
from tests.contract.said import assistant, replacing, result, system, tool_message, user


def exported(log: Calls) -> bytes:
    return bytes(log.export())


def copied(log: Calls) -> Calls:
    """Return a session imported from another's export."""
    new_id = fresh_id()
    imported(log.stub, exported(log), new_id)
    return log.other(new_id)


def test_a_fork_that_used_its_parents_request_ids_can_be_imported(log: Calls) -> None:
    log.append(user("a"), request_id="step-1")
    child = log.fork()
    first = child.append(user("b"), request_id="step-1")
    copy = copied(child)
    assert exported(copy).replace(copy.session_id.encode(), child.session_id.encode()) == exported(
        child
    )
    assert copy.append(user("b"), request_id="step-1") == first


def test_a_retry_after_an_import_gets_the_first_answer(log: Calls) -> None:
    first = log.append(user("a"), request_id="r1")
    log.append(user("b"), user("c"))
    copy = copied(log)
    assert copy.append(user("a"), request_id="r1") == first
    with refused("REQUEST_ID_REUSED"):
        copy.append(user("other"), request_id="r1")


def test_another_kind_of_call_under_an_imported_id_is_refused(log: Calls) -> None:
    log.append(user("a"), request_id="r1")
    copy = copied(log)
    for call in (copy.delete, copy.snapshot, copy.open_writer):
        with refused("REQUEST_ID_REUSED"):
            call(request_id="r1")
    with refused("REQUEST_ID_REUSED"):
        copy.rewind(-1, request_id="r1")
    assert copy.texts() == ["a"]


def test_any_request_id_of_a_client_is_exported(log: Calls) -> None:
    first = log.append(user("a"), request_id="~mine")
    assert copied(log).append(user("a"), request_id="~mine") == first


def test_a_time_no_calendar_has_is_refused_when_appended(log: Calls) -> None:
    event = user("a")
    event.body.message.create_time.seconds = 2**62
    with refused("INVALID_FIELD") as told:
        log.append(event)
    assert list(told.fields or {}) == ["events[0].body.message.create_time"]


def test_a_retry_of_a_rewind_is_answered_after_its_target_was_dropped(log: Calls) -> None:
    log.append(assistant("", "c1"), user("b"), user("c"))
    first = log.rewind(1, request_id="rw")
    log.append(replacing(system("S"), 0, 1))
    log.snapshot()
    assert log.rewind(1, request_id="rw") == first
    assert list(first.cut.unanswered_call_ids) == ["c1"]


@pytest.mark.parametrize("to_seq", [-2, 5, 100])
def test_a_rewind_to_nowhere_is_not_restored(log: Calls, to_seq: int) -> None:
    body = event_pb2.EventBody(rewind=event_pb2.Rewind(to_seq=to_seq))
    with refused("INVALID_FIELD"):
        log.restore(event_pb2.Event(seq=5, body=body))


def test_what_names_hundreds_of_ids_still_tells_its_reason(log: Calls) -> None:
    ids = [f"call-{n:04}-{'x' * 200}" for n in range(100)]
    log.append(assistant("", *ids), *(result("r", call_id) for call_id in ids))
    with refused("UNBALANCED_RANGE"):
        log.append(replacing(user("s"), 0, 0), require_balanced=True)


def test_a_strict_check_of_long_ids_tells_its_violation(log: Calls) -> None:
    log.append(user("a"))
    odd = [tool_message("r" * 1_000, "y" * 100_000) for _ in range(5)]
    with refused("REQUEST_NOT_DERIVABLE") as told:
        log.check(*odd, mode=check_pb2.CHECK_MODE_STRICT)
    assert told.violation is not None
    assert told.violation.extra


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"metadata_json":""', rb'"metadata_json":"\ud800"'),
        (b'"labels":{}', b'"labels":{},"whole_from_seq":99999999999999999999'),
        (b'"labels":{}', b'"labels":{},"whole_from_seq":true'),
        (b'"position":0', b'"position":0,"replace":[0,0]'),
        (b'"position":0', b'"position":0,"dropped":"no"'),
    ],
)
def test_an_edited_line_is_named(log: Calls, old: bytes, new: bytes) -> None:
    log.append(user("a"))
    edited = exported(log).replace(old, new)
    assert edited != exported(log)
    with refused("INVALID_FIELD") as told:
        imported(log.stub, edited, fresh_id())
    assert any("line" in field for field in told.fields or {})


def test_a_dropped_event_that_nothing_hides_is_not_imported(log: Calls) -> None:
    log.append(user("a"), user("b"))
    lines = exported(log).splitlines(keepends=True)
    head, _, rest = lines[1].partition(b',"event"')
    assert rest
    lines[1] = head + b',"dropped":true}\n'
    with refused("INVALID_FIELD"):
        imported(log.stub, b"".join(lines), fresh_id())
