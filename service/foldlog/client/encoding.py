"""From the client's values to the wire's requests. What does not fit is refused before sending."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from google.protobuf.message import Message as ProtoMessage

from foldlog.client.bodies import body_to_proto
from foldlog.client.fitting import MISFITS, fitting
from foldlog.client.new_events import Appendable, EntryRange, NewEvent, Placed, new_event
from foldlog.client.stored import Event
from foldlog.codec import header_to_proto, message_to_proto, time_to_proto
from foldlog.core.errors import InvalidFieldError
from foldlog.core.event import PositionRange
from foldlog.core.header import Header
from foldlog.core.message import Message
from foldlog.internal.v1 import raw_pb2
from foldlog.v1 import event_pb2, message_pb2

M = TypeVar("M", bound=ProtoMessage)


def request(kind: type[M], **values: Any) -> M:
    """Return a request of these fields. Raises InvalidFieldError naming those that do not fit."""
    try:
        return kind(**values)
    except MISFITS:
        raise InvalidFieldError(fields=dict(_misfits(kind, values))) from None


def _misfits(kind: type[M], values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        try:
            kind(**{name: value})
        except MISFITS as error:
            yield name, str(error)


def event_to_proto(given: Appendable, path: str) -> event_pb2.NewEvent:
    """Return the wire's form. Raises InvalidFieldError whose fields begin with the path."""
    try:
        event = new_event(given)
        return fitting(event, _event_to_proto, "")
    except InvalidFieldError as error:
        raise error.within(path) from None


def _event_to_proto(event: NewEvent) -> event_pb2.NewEvent:
    body = body_to_proto(event.body)
    if event.group is not None:
        body.group = event.group
    if event.extra_json is not None:
        body.extra_json = event.extra_json
    time = None if event.time_ns is None else time_to_proto(event.time_ns)
    return event_pb2.NewEvent(body=body, time=time, replace=_replace(event))


def _replace(event: NewEvent) -> event_pb2.Replace | None:
    stated = event_pb2.Replace(allow_empty=event.allow_empty, trim=event.trim)
    match event.replace:
        case PositionRange(start, stop):
            stated.positions.CopyFrom(event_pb2.PositionRange(start=start, stop=stop))
        case EntryRange(first_seq, last_seq):
            entries = event_pb2.EntryRange(first_seq=first_seq, last_seq=last_seq)
            stated.entries.CopyFrom(entries)
        case _:
            return None
    return stated


def restored_to_proto(given: Event | Placed, path: str) -> raw_pb2.RawEvent:
    """Return the event for a restore: one that was read as it is stored, or one that is placed."""
    try:
        if isinstance(given, Event):
            return fitting(given, _stored_to_proto, "")
        return fitting(given, _placed_to_proto, "")
    except InvalidFieldError as error:
        raise error.within(path) from None


def _stored_to_proto(event: Event) -> raw_pb2.RawEvent:
    return raw_pb2.RawEvent(
        seq=event.seq,
        type=event.type,  # type: ignore[arg-type]
        time=time_to_proto(event.time_ns),
        body=event.encoded_body,
        position=event.position,
        replace=_applied(event),
        request_id=event.request_id,
        dropped=event.dropped,
        request_next_seq=event.request_next_seq,
    )


def _applied(event: Event) -> event_pb2.AppliedReplace | None:
    if event.replace is None:
        return None
    return event_pb2.AppliedReplace(
        start=event.replace.start,
        stop=event.replace.stop,
        shadowed_seqs=event.replace.shadowed_seqs,
    )


def _placed_to_proto(placed: Placed) -> raw_pb2.RawEvent:
    pb = _event_to_proto(placed.event)
    raw = raw_pb2.RawEvent(seq=placed.seq, body=pb.body.SerializeToString())
    if pb.HasField("time"):
        raw.time.CopyFrom(pb.time)
    match placed.event.replace:
        case PositionRange(start, stop):
            raw.replace.CopyFrom(event_pb2.AppliedReplace(start=start, stop=stop))
        case EntryRange():
            raise InvalidFieldError.of("replace.entries", "a restore addresses by positions")
    return raw


def checked_message_to_proto(message: Message, path: str) -> message_pb2.Message:
    """Return the wire's form. Raises InvalidFieldError whose fields begin with the path."""
    return fitting(message, message_to_proto, path)


def checked_header_to_proto(header: Header | None) -> event_pb2.RequestHeader | None:
    """Return the wire's form. Raises InvalidFieldError naming the field."""
    return None if header is None else fitting(header, header_to_proto, "header")
