"""Messages and events in short forms, so that a test says only what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from foldlog.v1 import event_pb2, message_pb2
from google.protobuf.timestamp_pb2 import Timestamp

BATCH_BYTES = 2_000_000
BATCH_EVENTS = 500


def message(role: str, content: str | None = None, **fields: Any) -> message_pb2.Message:
    """Return a message with a text content, or none."""
    made = message_pb2.Message(role=message_pb2.Role.Value(f"ROLE_{role.upper()}"), **fields)
    if content is not None:
        made.text = content
    return made


def tool_call(call_id: str, name: str = "f", arguments: str = "{}") -> message_pb2.ToolCall:
    """Return a tool call."""
    return message_pb2.ToolCall(id=call_id, name=name, arguments=arguments)


def system_message(content: str, **fields: Any) -> message_pb2.Message:
    """Return a system message."""
    return message("system", content, **fields)


def user_message(content: str, **fields: Any) -> message_pb2.Message:
    """Return a user message."""
    return message("user", content, **fields)


def assistant_message(content: str | None, *call_ids: str, **fields: Any) -> message_pb2.Message:
    """Return an assistant message that makes the calls."""
    return message("assistant", content, tool_calls=[tool_call(i) for i in call_ids], **fields)


def tool_message(content: str, call_id: str, **fields: Any) -> message_pb2.Message:
    """Return the result of a call."""
    return message("tool", content, tool_call_id=call_id, **fields)


def event(said: message_pb2.Message, **fields: Any) -> event_pb2.NewEvent:
    """Return a surface event."""
    return event_pb2.NewEvent(body=event_pb2.EventBody(message=said), **fields)


def system(content: str, time: Timestamp | None = None, **fields: Any) -> event_pb2.NewEvent:
    """Return the event of a system message."""
    return event(system_message(content, **fields), time=time)


def user(content: str, time: Timestamp | None = None, **fields: Any) -> event_pb2.NewEvent:
    """Return the event of a user message."""
    return event(user_message(content, **fields), time=time)


def assistant(content: str | None, *call_ids: str, **fields: Any) -> event_pb2.NewEvent:
    """Return the event of an assistant message that makes the calls."""
    return event(assistant_message(content, *call_ids, **fields))


def result(content: str, call_id: str, **fields: Any) -> event_pb2.NewEvent:
    """Return the event of a tool result."""
    return event(tool_message(content, call_id, **fields))


def bookkeeping(**kind: Any) -> event_pb2.NewEvent:
    """Return an event that projects to nothing, such as turn_start=TurnStart()."""
    return event_pb2.NewEvent(body=event_pb2.EventBody(**kind))


def turn_start(number: int | None = None) -> event_pb2.NewEvent:
    """Return the start of a turn."""
    return bookkeeping(turn_start=event_pb2.TurnStart(number=number))


def turn_end(number: int | None = None) -> event_pb2.NewEvent:
    """Return the end of a turn."""
    return bookkeeping(turn_end=event_pb2.TurnEnd(number=number))


def header(**fields: Any) -> event_pb2.NewEvent:
    """Return a request header's event."""
    return bookkeeping(request_header=event_pb2.RequestHeader(**fields))


def custom(kind: str, payload: bytes = b"", *keys: str) -> event_pb2.NewEvent:
    """Return a custom event."""
    return bookkeeping(custom=event_pb2.Custom(kind=kind, payload=payload, keys=keys))


def replacing(
    new: event_pb2.NewEvent, start: int, stop: int, *, allow_empty: bool = False
) -> event_pb2.NewEvent:
    """Return the event as a replace of positions, both ends in."""
    positions = event_pb2.PositionRange(start=start, stop=stop)
    new.replace.CopyFrom(event_pb2.Replace(positions=positions, allow_empty=allow_empty))
    return new


def replacing_entries(
    new: event_pb2.NewEvent, first_seq: int, last_seq: int, *, allow_empty: bool = False
) -> event_pb2.NewEvent:
    """Return the event as a replace of live entries, both ends in."""
    entries = event_pb2.EntryRange(first_seq=first_seq, last_seq=last_seq)
    new.replace.CopyFrom(event_pb2.Replace(entries=entries, allow_empty=allow_empty))
    return new


def batches(events: Iterable[event_pb2.NewEvent]) -> Iterator[list[event_pb2.NewEvent]]:
    """Yield batches that stay under the limits; an event that does not goes alone."""
    batch: list[event_pb2.NewEvent] = []
    size = 0
    for new in events:
        encoded = new.ByteSize()
        if batch and (size + encoded > BATCH_BYTES or len(batch) == BATCH_EVENTS):
            yield batch
            batch, size = [], 0
        batch.append(new)
        size += encoded
    if batch:
        yield batch
