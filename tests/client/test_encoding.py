"""What cannot be sent is refused before it is, and by the field's name."""

from __future__ import annotations

from typing import Any

import pytest
from foldlog import (
    Event,
    FoldedMessage,
    Header,
    Message,
    TextPart,
    ToolCall,
    assistant,
    at,
    custom,
    errors,
    events_of,
    grouped,
    placed,
    replacing,
    request_header,
    system,
    tool_result,
    turn_start,
    user,
    with_extra,
)
from foldlog.client.encoding import event_to_proto, restored_to_proto
from foldlog.client.operations import appending, changing, checking, reading, sessions
from foldlog.client.stored import AppliedReplace
from foldlog.codec import message_from_proto
from foldlog.converters import Converted
from foldlog.v1 import event_pb2

from tests.client.driving import Driven, State, session

LONE = "a\ud800b"


def refused_fields(operation: Any) -> set[str]:
    """Return the fields for which an operation is refused before anything is sent."""
    with pytest.raises(errors.InvalidFieldError) as refused:
        Driven(operation, [])
    return set(refused.value.fields)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (user(LONE), "events[1].body.content"),
        (user([TextPart("a"), TextPart(LONE)]), "events[1].body.content[1].text"),
        (assistant(tool_calls=[ToolCall("c", LONE)]), "events[1].body.tool_calls[0].name"),
        (tool_result("", tool_call_id=LONE), "events[1].body.tool_call_id"),
        (request_header(Header(tools_json=("{}", LONE))), "events[1].body.header.tools_json[1]"),
        (custom("k", keys=["a", LONE]), "events[1].body.keys[1]"),
        (with_extra(user(""), LONE), "events[1].extra_json"),
        (at(user(""), 10**30), "events[1].time"),
        (replacing(user(""), start=2**63, stop=2**63), "events[1].value"),
        ({"role": "user"}, "events[1].body"),
        (Message(2**40), "events[1].value"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_event_that_does_not_fit_is_refused_by_its_index(event: Any, field: str) -> None:
    assert refused_fields(appending.append(session(), user("ok"), event)) == {field}


def test_requests_name_each_field_that_does_not_fit() -> None:
    call = sessions.create(State("nowhere"), labels={"a": LONE}, metadata_json=LONE)
    assert refused_fields(call) == {"labels", "metadata_json"}
    assert refused_fields(changing.rewind(session(), 2**63)) == {"to_seq"}
    assert refused_fields(changing.open_writer(session(), LONE)) == {"owner"}
    assert refused_fields(checking.check(session(), [user("a"), user(LONE)])) == {
        "messages[1].content"
    }
    assert refused_fields(appending.seed(session(), [turn_start()])) == {"messages[0]"}  # type: ignore[list-item]


@pytest.mark.parametrize("session_id", ["", "a\0b", LONE], ids=["empty", "nul", "lone-surrogate"])
def test_an_id_that_no_session_can_have_is_refused_at_once(session_id: str) -> None:
    client = State("nowhere")
    with pytest.raises(errors.InvalidFieldError):
        client.session(session_id)
    assert refused_fields(sessions.create(client, session_id)) == {"session_id"}
    assert refused_fields(changing.fork(session(), session_id=session_id)) == {"session_id"}
    assert refused_fields(reading.diff(session(), session_id)) == {"other"}


@pytest.mark.parametrize(
    "ends", [{}, {"first_seq": 1}, {"start": 1, "stop": 2, "last_seq": 3}], ids=str
)
def test_a_replace_is_by_entries_or_by_positions(ends: dict[str, int]) -> None:
    with pytest.raises(errors.InvalidFieldError):
        replacing(user("hi"), **ends)  # type: ignore[arg-type]


def test_wrappers_add_to_each_other() -> None:
    event = with_extra(grouped(at(replacing(user("a"), start=1, stop=2), 1_001), "g"), "{}")
    pb = event_to_proto(event, "events[0]")
    assert (pb.body.message.text, pb.body.group, pb.body.extra_json) == ("a", "g", "{}")
    assert (pb.time.seconds, pb.time.nanos) == (0, 1_001)
    assert (pb.replace.positions.start, pb.replace.positions.stop) == (1, 2)


def test_a_folded_message_is_appended_with_its_group_and_time() -> None:
    pb = event_to_proto(FoldedMessage(7, 7, user("a"), 5, "g"), "events[0]")
    assert (pb.body.message.text, pb.body.group, pb.time.nanos) == ("a", "g", 5)


def test_a_converters_result_is_appended_in_its_groups() -> None:
    converted = Converted((system("s"), user("a")), (None, "g"))
    assert events_of(converted) == [grouped(user("a"), "g") if i else _plain() for i in range(2)]


def _plain() -> Any:
    return events_of(Converted((system("s"),)))[0]


def test_a_stored_event_is_restored_with_the_bytes_it_has() -> None:
    newer = b"\xfa\x01\x01x"
    event = Event(7, 2, 9, newer, 5, AppliedReplace(5, 6, (5, 6)), "r1", dropped=False)
    raw = restored_to_proto(event, "events[0]")
    assert (raw.seq, raw.body, raw.request_id, raw.time.nanos) == (7, newer, "r1", 9)
    assert (raw.replace.start, raw.replace.stop) == (5, 6)


def test_an_event_without_a_body_is_restored_as_dropped() -> None:
    raw = restored_to_proto(Event(7, 2, 9, None, 7, dropped=True), "events[0]")
    assert raw.dropped
    assert not raw.HasField("body")


def test_a_placed_event_is_restored_at_its_seq() -> None:
    raw = restored_to_proto(placed(replacing(user("a"), start=1, stop=3), 9), "events[0]")
    body = event_pb2.EventBody.FromString(raw.body)
    assert (raw.seq, message_from_proto(body.message)) == (9, user("a"))
    assert (raw.replace.start, raw.replace.stop) == (1, 3)


def test_a_restore_does_not_address_by_entries() -> None:
    with pytest.raises(errors.InvalidFieldError) as refused:
        restored_to_proto(placed(replacing(user("a"), first_seq=1, last_seq=3), 9), "events[4]")
    assert set(refused.value.fields) == {"events[4].replace.entries"}
