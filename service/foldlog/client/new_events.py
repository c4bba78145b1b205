"""Events to append: their values, and the short functions that make them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeAlias

from foldlog.client.bodies import (
    KNOWN_BODIES,
    Body,
    Custom,
    HeaderSnapshot,
    StepEnd,
    StepStart,
    ToolCallState,
    TurnEnd,
    TurnStart,
    Usage,
)
from foldlog.codec import time_ns_of
from foldlog.core.errors import InvalidFieldError
from foldlog.core.event import PositionRange, ToolCallPhase
from foldlog.core.header import Header, HeaderReason
from foldlog.core.message import Message, Part, Role, ToolCall


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Two seqs that are live on the surface now, in surface order, and everything between them."""

    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to append: a body, and what goes with it. `time_ns` None is the server's clock."""

    body: Body
    time_ns: int | None = None
    replace: PositionRange | EntryRange | None = None
    allow_empty: bool = False
    trim: bool = False
    group: str | None = None
    extra_json: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """An event with the seq it had, for a restore."""

    seq: int
    event: NewEvent


class CarriesMessage(Protocol):
    """A message and what it comes with: a FoldedMessage, or an element of a converter's result."""

    @property
    def message(self) -> Message: ...


class CarriesGroups(Protocol):
    """The messages of a converter's result, and which of them were one for the provider."""

    @property
    def messages(self) -> Sequence[Message]: ...

    @property
    def groups(self) -> Sequence[str | None]: ...


Appendable: TypeAlias = NewEvent | Body | CarriesMessage
Content: TypeAlias = str | Sequence[Part] | None


def new_event(given: Appendable) -> NewEvent:
    """Return what is given as an event to append.

    A carrier of a message gives its group and its time too. Raises InvalidFieldError for what is
    no event.
    """
    if isinstance(given, NewEvent):
        return given
    if isinstance(given, KNOWN_BODIES):
        return NewEvent(given)
    message = getattr(given, "message", None)
    if not isinstance(message, Message):
        raise InvalidFieldError.of("body", f"{type(given).__name__} is not an event")
    return NewEvent(
        message, time_ns=getattr(given, "time_ns", None), group=getattr(given, "group", None)
    )


def system(
    content: Content, *, name: str | None = None, metadata_json: str | None = None
) -> Message:
    """Return a system message."""
    return Message(Role.SYSTEM, _content(content), name=name, metadata_json=metadata_json)


def user(content: Content, *, name: str | None = None, metadata_json: str | None = None) -> Message:
    """Return a user message."""
    return Message(Role.USER, _content(content), name=name, metadata_json=metadata_json)


def assistant(
    content: Content = None,
    *,
    tool_calls: Iterable[ToolCall] = (),
    reasoning: str | None = None,
    name: str | None = None,
    metadata_json: str | None = None,
) -> Message:
    """Return an assistant message."""
    return Message(
        Role.ASSISTANT,
        _content(content),
        tool_calls=tuple(tool_calls),
        name=name,
        reasoning=reasoning,
        metadata_json=metadata_json,
    )


def tool_result(
    content: Content,
    *,
    tool_call_id: str,
    name: str | None = None,
    metadata_json: str | None = None,
) -> Message:
    """Return a tool message: the result of the call of this id."""
    return Message(
        Role.TOOL,
        _content(content),
        tool_call_id=tool_call_id,
        name=name,
        metadata_json=metadata_json,
    )


def _content(content: Content) -> str | tuple[Part, ...] | None:
    return content if content is None or isinstance(content, str) else tuple(content)


def tool_call(
    id: str | None = None,
    *,
    name: str | None = None,
    arguments: str | None = None,
    idempotency_key: str | None = None,
    phase: ToolCallPhase = ToolCallPhase.DISPATCHED,
) -> ToolCallState:
    """Return a tool call's progress; the call itself is in the assistant's message."""
    return ToolCallState(id, name, arguments, idempotency_key, phase)


def turn_start(number: int | None = None, *, reason: str | None = None) -> TurnStart:
    """Return the start of a turn."""
    return TurnStart(number, reason)


def turn_end(
    number: int | None = None, *, reason: str | None = None, usage: Usage | None = None
) -> TurnEnd:
    """Return the end of a turn."""
    return TurnEnd(number, reason, usage)


def step_start(number: int | None = None, *, reason: str | None = None) -> StepStart:
    """Return the start of a step."""
    return StepStart(number, reason)


def step_end(
    number: int | None = None, *, reason: str | None = None, usage: Usage | None = None
) -> StepEnd:
    """Return the end of a step."""
    return StepEnd(number, reason, usage)


def request_header(
    header: Header, *, reason: HeaderReason = HeaderReason.UNSPECIFIED
) -> HeaderSnapshot:
    """Return the header of the requests that follow: all of it, never a difference."""
    return HeaderSnapshot(header, reason)


def custom(kind: str, payload: bytes = b"", *, keys: Iterable[str] = ()) -> Custom:
    """Return an event of your own. Listings filter on its kind and on up to 8 keys."""
    return Custom(kind, payload, tuple(keys))


def replacing(
    event: Appendable,
    *,
    first_seq: int | None = None,
    last_seq: int | None = None,
    start: int | None = None,
    stop: int | None = None,
    allow_empty: bool = False,
    trim: bool = False,
) -> NewEvent:
    """Return the event so that it takes the place of a range of the surface, both ends in.

    Name either two live entries by seq, or two positions. `allow_empty` accepts a range that
    shadows nothing. `trim` says that the event only trims a tool result: it is refused unless it
    replaces exactly one, and differs from it in the content alone.
    """
    ranges: list[PositionRange | EntryRange] = []
    if first_seq is not None and last_seq is not None:
        ranges.append(EntryRange(first_seq, last_seq))
    if start is not None and stop is not None:
        ranges.append(PositionRange(start, stop))
    given = sum(end is not None for end in (first_seq, last_seq, start, stop))
    if len(ranges) != 1 or given != 2:
        raise InvalidFieldError.of("replace", "needs first_seq and last_seq, or start and stop")
    return replace(new_event(event), replace=ranges[0], allow_empty=allow_empty, trim=trim)


def at(event: Appendable, time: datetime | int) -> NewEvent:
    """Return the event with the time it happened: a time with a zone, or nanoseconds since 1970."""
    return replace(new_event(event), time_ns=time_ns_of(time))


def grouped(event: Appendable, group: str) -> NewEvent:
    """Return the event tied to the others of its group, which were one for the provider."""
    return replace(new_event(event), group=group)


def with_extra(event: Appendable, extra_json: str) -> NewEvent:
    """Return the event with free JSON text that is stored and never projected."""
    return replace(new_event(event), extra_json=extra_json)


def events_of(converted: CarriesGroups) -> list[NewEvent]:
    """Return the messages of a converter's result as events, each in its group."""
    pairs = zip(converted.messages, converted.groups, strict=True)
    return [NewEvent(message, group=group) for message, group in pairs]


def placed(event: Appendable, seq: int) -> Placed:
    """Return the event with the seq it had, for a restore."""
    return Placed(seq, new_event(event))
