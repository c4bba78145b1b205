"""Faults that an attack found, each with what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from foldlog.internal.v1.raw_pb2 import RawAppendEventsRequest, RawNewEvent
from foldlog.v1 import check_pb2, event_pb2, message_pb2

from tests.contract.attachments import collect, put, stored
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported, raw_call
from tests.contract.refusal import refused
from tests.contract.requesting import begin, record, record_header
from tests.contract.said import (
    assistant,
    replacing,
    result,
    system,
    tool_message,
    user,
    user_message,
)
from tests.served import Served


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


def test_a_cut_of_history_without_a_dropped_event_is_imported(log: Calls) -> None:
    log.append(user("a"), user("b"))
    log.fork()  # for which the bodies stay
    log.append(replacing(user("s"), 0, 1))
    log.snapshot()
    child = log.fork()
    assert child.get().whole_from_seq == 2
    copy = copied(child)
    assert exported(copy).replace(copy.session_id.encode(), child.session_id.encode()) == exported(
        child
    )
    assert copy.get().whole_from_seq == 2
    assert copy.texts(1) == child.texts(1) == ["a", "b"]


@pytest.mark.parametrize("count", [2**62 + 1, 2**63 - 1])
def test_a_request_of_more_rows_than_there_can_be_is_not_imported(log: Calls, count: int) -> None:
    log.append(user("a"), request_id="r1")
    edited = exported(log).replace(b'"rows":1', b'"rows":%d' % count)
    with refused("INVALID_FIELD"):
        imported(log.stub, edited, fresh_id())


def split(said: message_pb2.Message) -> bytes:
    """Return the encoding of a body that has its message in two pieces."""
    first = event_pb2.EventBody(message=message_pb2.Message(role=said.role))
    rest = message_pb2.Message(text=said.text)
    return first.SerializeToString() + event_pb2.EventBody(message=rest).SerializeToString()


def test_a_message_in_two_pieces_is_refused(served: Served) -> None:
    log = Calls.create(served.stub)
    event = RawNewEvent(body=split(user_message("a")))
    asked = RawAppendEventsRequest(session_id=log.session_id, events=[event])
    with refused("INVALID_FIELD") as told:
        raw_call(served.channel, "AppendEvents")(asked.SerializeToString(), timeout=DEADLINE_S)
    assert list(told.fields or {}) == ["events[0].body.message"]


def at_length(data: bytes) -> bytes:
    """Return bytes behind their length, which is written longer than it need be."""
    return bytes([len(data) | 0x80, 0]) + data


def test_an_oddly_encoded_reference_is_one(serve: Callable[..., Served], backend: str) -> None:
    served = serve(backend, FOLDLOG_OBJECT_GRACE_S="0")
    log = Calls.create(served.stub)
    digest = put(served.stub, b"named").sha256
    part = b"\x12" + at_length(b"\x0a" + at_length(digest) + b"\x12\x03a/b")
    said = b"\x08\x02\x1a" + at_length(b"\x0a" + at_length(part))
    event = RawNewEvent(body=b"\x0a" + at_length(said))
    asked = RawAppendEventsRequest(session_id=log.session_id, events=[event])
    raw_call(served.channel, "AppendEvents")(asked.SerializeToString(), timeout=DEADLINE_S)
    assert log.messages()[0].parts.parts[0].attachment.sha256 == digest
    assert collect(served.stub).collected_count == 0
    assert stored(served.stub, digest)


@pytest.mark.parametrize("grace_s", [10**11, 2**63 - 1])
def test_a_grace_of_ages_keeps_everything(stub: Any, grace_s: int) -> None:
    digest = put(stub, b"kept for ages").sha256
    assert collect(stub, grace_s=grace_s).collected_count == 0
    assert stored(stub, digest)


def test_no_record_of_a_request_is_larger_than_an_event_may_be(log: Calls) -> None:
    log.append(user("a"))
    one_shot = event_pb2.OneShot(purpose="x" * 4_000_000)
    with refused("TOO_LARGE", field="sent"):
        record(log, event_pb2.SentRequest(built_at_next_seq=1, one_shot=one_shot))
    assert log.get().next_seq == 1


def test_a_header_that_is_too_large_is_named(log: Calls) -> None:
    large = event_pb2.RequestHeader(system_prompt="x" * 4_000_000)
    for write in (lambda: record_header(log, large), lambda: begin(log, header=large)):
        with refused("TOO_LARGE", field="header"):
            write()
