"""Events as they come in: decoded, judged by themselves, not yet in any log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.unknown_fields import UnknownFieldSet

from foldlog.application.messages import judge_message
from foldlog.application.readers import ENTRY_BYTES, EVENT_BYTES
from foldlog.codec import YEAR_1_S, YEAR_10000_S, header_from_proto
from foldlog.core.canonical import check_free_json
from foldlog.core.errors import InvalidFieldError, TooLargeError
from foldlog.core.event import TYPE_OF_ROLE, EventType, PositionRange
from foldlog.core.header import Header
from foldlog.core.validation import (
    SHA256_BYTES,
    validate_custom,
    validate_header,
)
from foldlog.internal.v1.raw_pb2 import RawEventBody, RawNewEvent
from foldlog.internal.v1.storage_pb2 import HeaderTexts
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import EventBody, HeaderReason, Replace, RequestHeader, SentRequest
from foldlog.v1.message_pb2 import Message

HEADER_REASONS = frozenset(HeaderReason.values())

TYPE_OF_KIND = {
    "tool_call": EventType.TOOL_CALL,
    "turn_start": EventType.TURN_START,
    "turn_end": EventType.TURN_END,
    "step_start": EventType.STEP_START,
    "step_end": EventType.STEP_END,
    "request_header": EventType.REQUEST_HEADER,
    "rewind": EventType.REWIND,
    "custom": EventType.CUSTOM,
    "request": EventType.REQUEST,
}


@dataclass(frozen=True, slots=True)
class ByEntries:
    """A replace addressed by two live entries."""

    first_seq: int
    last_seq: int


class Incoming(NamedTuple):
    """An event to append. `message` is set on surface events, `rewind_to` on rewinds.

    `header_texts` is set on a header whose body lacks its large texts, `group` on an event that is
    tied to others.
    """

    type: EventType
    body: bytes
    time: tuple[int, int] | None = None
    replace: PositionRange | ByEntries | None = None
    allow_empty: bool = False
    message: Message | None = None
    group: str | None = None
    rewind_to: int | None = None
    header_texts: HeaderTexts | None = None
    trim: bool = False


def judge_batch_size(events: Sequence[RawNewEvent], limits: Limits) -> int:
    """Return what a batch weighs. Raises InvalidFieldError or TooLargeError for one of no size."""
    if not events:
        raise InvalidFieldError.of("events", "at least one event is required")
    require_size("events", len(events), limits.batch_events)
    size = sum(len(e.body) for e in events)
    require_size("events", size, limits.batch_bytes)
    return size + len(events) * EVENT_BYTES


def incoming_events(events: Sequence[RawNewEvent], limits: Limits) -> list[Incoming]:
    """Return a batch's events.

    Raises InvalidFieldError or TooLargeError naming the index and the field.
    """
    judge_batch_size(events, limits)
    return judged_events(events, limits)


def judged_events(events: Sequence[RawNewEvent], limits: Limits) -> list[Incoming]:
    """Return the events of a batch whose size was judged."""
    return [_incoming(event, f"events[{i}]", limits) for i, event in enumerate(events)]


def weight_of(batch: Sequence[Incoming], entries: int = 0) -> int:
    """Return what placing a batch weighs, on a surface of so many entries if it has replaces."""
    bodies = sum(len(event.body) + EVENT_BYTES for event in batch)
    return bodies + entries * ENTRY_BYTES


def require_size(field: str, size: int, limit: int) -> None:
    """Raise TooLargeError if a size exceeds its limit."""
    if size > limit:
        raise TooLargeError(field=field, size=size, limit=limit)


def _incoming(event: RawNewEvent, path: str, limits: Limits) -> Incoming:
    body, type_, message = judged_body(event.body, path, limits)
    if type_ is EventType.REWIND:
        raise InvalidFieldError.of(f"{path}.body.rewind", "rewinds are written by RewindSession")
    if type_ is EventType.REQUEST:
        raise InvalidFieldError.of(f"{path}.body.request", "requests are kept by RecordRequest")
    time = time_of(event.time, f"{path}.time") if event.HasField("time") else None
    group = body.group if body.HasField("group") else None
    incoming = Incoming(type_, event.body, time, message=message, group=group)
    return _replacing(incoming, event, path) if event.HasField("replace") else incoming


def _replacing(incoming: Incoming, event: RawNewEvent, path: str) -> Incoming:
    stated = event.replace
    if incoming.message is None:
        raise InvalidFieldError.of(f"{path}.replace", "only a surface event can replace")
    if stated.trim and incoming.type is not EventType.TOOL_RESULT:
        raise InvalidFieldError.of(f"{path}.replace.trim", "only a tool result trims another")
    return incoming._replace(
        replace=_range(stated, f"{path}.replace"),
        allow_empty=stated.allow_empty,
        trim=stated.trim,
    )


def judged_body(
    encoded: bytes, path: str, limits: Limits, *, keeps_newer: bool = False
) -> tuple[EventBody, EventType, Message | None]:
    """Return a body decoded, its type, and its message if it is a surface event's.

    With `keeps_newer`, what a newer release wrote and this one does not know passes; the type is
    then UNSPECIFIED. Raises InvalidFieldError or TooLargeError.
    """
    require_size(f"{path}.body", len(encoded), limits.event_bytes)
    try:
        body = EventBody.FromString(encoded)
    except DecodeError:
        raise InvalidFieldError.of(f"{path}.body", "it does not decode as an EventBody") from None
    try:
        _require_one_message(body, encoded)
        return body, *_judged(body, limits, keeps_newer)
    except (InvalidFieldError, TooLargeError) as error:
        raise error.within(f"{path}.body") from None


def _require_one_message(body: EventBody, encoded: bytes) -> None:
    """Raise InvalidFieldError for a body in pieces, which only some decoders put together.

    Readers are sent the last piece as it was stored. What is as long as its own encoding has one.
    """
    if body.HasField("message") and body.ByteSize() != len(encoded):
        last = RawEventBody.FromString(encoded).message
        if body.message != Message.FromString(last):
            raise InvalidFieldError.of("message", "it stands there more than once")


def _judged(body: EventBody, limits: Limits, keeps_newer: bool) -> tuple[EventType, Message | None]:
    if body.HasField("extra_json"):
        check_free_json(body.extra_json, "extra_json", limits.json_depth)
    kind = body.WhichOneof("kind")
    if kind is None and keeps_newer and len(UnknownFieldSet(body)):
        return EventType.UNSPECIFIED, None
    if kind is None:
        raise InvalidFieldError.of("kind", "unknown event type: no kind this release knows is set")
    if kind == "message":
        return _judged_message(body, limits)
    type_ = TYPE_OF_KIND[kind]
    if type_ is EventType.REQUEST_HEADER:
        _within(kind, judge_header, body.request_header, limits, keeps_newer=keeps_newer)
    elif type_ is EventType.REQUEST:
        _within(kind, judge_sent_request, body.request, limits)
    elif type_ is EventType.CUSTOM:
        custom = body.custom
        keys = list(custom.keys)
        _within(
            kind, validate_custom, custom.kind, keys, limits.custom_keys, limits.custom_key_bytes
        )
    return type_, None


def judge_header(header: RequestHeader, limits: Limits, *, keeps_newer: bool = False) -> None:
    """Raise InvalidFieldError for a header that no log may hold."""
    validate_header(header_from_proto(header), limits.json_depth)
    if header.reason not in HEADER_REASONS and not keeps_newer:
        raise InvalidFieldError.of("reason", f"{header.reason} is no known reason")


def judge_sent_request(sent: SentRequest, limits: Limits) -> None:
    """Raise InvalidFieldError for a record of a request that no log may hold."""
    if sent.built_at_next_seq < 0:
        raise InvalidFieldError.of("built_at_next_seq", f"{sent.built_at_next_seq} is below 0")
    for name in ("encoding_sha256", "body_sha256"):
        if len(getattr(sent, name)) not in (0, SHA256_BYTES):
            raise InvalidFieldError.of(name, f"a digest of {SHA256_BYTES} bytes is required")
    for name in ("converter", "converter_version"):
        require_size(name, len(getattr(sent, name).encode()), limits.label_bytes)
    if sent.HasField("one_shot"):
        _judge_one_shot(sent, limits)
    elif sent.HasField("step_seq") and not 0 <= sent.step_seq < sent.built_at_next_seq:
        raise InvalidFieldError.of("step_seq", f"{sent.step_seq} is no seq below built_at_next_seq")


def _judge_one_shot(sent: SentRequest, limits: Limits) -> None:
    one_shot = sent.one_shot
    if not one_shot.purpose:
        raise InvalidFieldError.of("one_shot.purpose", "is required")
    if sent.HasField("step_seq") or sent.encoding_sha256:
        wrong = "a one-shot request has neither a step nor an encoding"
        raise InvalidFieldError.of("one_shot", wrong)
    if one_shot.parameters_json:
        parameters = Header(parameters_json=one_shot.parameters_json)
        _within("one_shot", validate_header, parameters, limits.json_depth)
    ends = [name for name in ("first_seq", "last_seq") if one_shot.HasField(name)]
    if len(ends) == 1:
        raise InvalidFieldError.of("one_shot", "first_seq and last_seq go together")
    if ends and not 0 <= one_shot.first_seq <= one_shot.last_seq < sent.built_at_next_seq:
        raise InvalidFieldError.of("one_shot", "its range is none below built_at_next_seq")


def _judged_message(body: EventBody, limits: Limits) -> tuple[EventType, Message | None]:
    message = body.message
    _within("message", judge_message, message, limits.json_depth)
    if message.HasField("create_time"):
        time_of(message.create_time, "message.create_time")
    return TYPE_OF_ROLE[message.role], message


def _within(prefix: str, judge: object, *args: object, **kwargs: object) -> None:
    try:
        judge(*args, **kwargs)  # type: ignore[operator]
    except (InvalidFieldError, TooLargeError) as error:
        raise error.within(prefix) from None


def _range(stated: Replace, path: str) -> PositionRange | ByEntries:
    match stated.WhichOneof("range"):
        case "positions":
            return PositionRange(stated.positions.start, stated.positions.stop)
        case "entries":
            return ByEntries(stated.entries.first_seq, stated.entries.last_seq)
        case _:
            raise InvalidFieldError.of(f"{path}.range", "positions or entries are required")


def time_of(time: Timestamp, path: str) -> tuple[int, int]:
    """Return (seconds, nanoseconds). Raises InvalidFieldError outside of the years 1 to 9999."""
    if not (YEAR_1_S <= time.seconds < YEAR_10000_S and 0 <= time.nanos < 1_000_000_000):
        raise InvalidFieldError.of(path, "it is not a time within the years 1 to 9999")
    return time.seconds, time.nanos


def content_digest(parts: Iterable[bytes]) -> bytes:
    """Return what tells whether two requests ask for the same: 16 bytes."""
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8))
        digest.update(part)
    return digest.digest()[:16]
