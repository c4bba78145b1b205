"""What a transcript is made of: the fold and its turns, the log and what became of it, a watch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from typing import TYPE_CHECKING

from foldlog.cli.events import described, heading, type_name
from foldlog.client.bodies import StepStart, TurnStart
from foldlog.client.stored import CaughtUp, Deleted, Event, EventState, HistoryDropped
from foldlog.core.event import EventType
from foldlog.core.message import Message

if TYPE_CHECKING:
    from foldlog.client.client import Session
    from foldlog.client.stored import WatchItem
    from foldlog.client.values import FoldedMessage


@dataclass(frozen=True, slots=True)
class Entry:
    """A message. `gone` says why it does not count now; `shadows` names what it replaced."""

    seq: int
    position: int
    message: Message
    group: str | None = None
    gone: str = ""
    shadows: str = ""


@dataclass(frozen=True, slots=True)
class Remark:
    """A bookkeeping event in words, or something else worth a line."""

    seq: int | None
    text: str
    gone: str = ""

    @property
    def position(self) -> int:
        """Where it stands among entries."""
        return -1 if self.seq is None else self.seq


@dataclass(frozen=True, slots=True)
class Beginning(Remark):
    """Where a turn or a step begins."""

    is_turn: bool = False


Item = Entry | Remark


def until(events: Iterable[Event], at: int | None) -> Iterator[Event]:
    """Yield the events up to a seq, inclusive."""
    for event in events:
        if at is not None and event.seq > at:
            return
        yield event


def log(events: Iterable[Event], at: int | None) -> Iterator[Item]:
    """Yield every event in the order of the log, with what became of it."""
    return (_logged(event) for event in until(events, at))


def _logged(event: Event) -> Item:
    gone = _gone(event)
    match event.body:
        case None:
            return Remark(event.seq, f"{type_name(event.type)}: its body was dropped", gone)
        case Message() as message:
            position = event.seq if event.position is None else event.position
            return Entry(event.seq, position, message, event.group, gone, _shadows(event))
        case body:
            return Remark(event.seq, described(body), gone)


def _gone(event: Event) -> str:
    if event.state not in (EventState.SHADOWED, EventState.UNDONE):
        return ""
    return f"{event.state.name.lower()} by {event.state_seq}"


def _shadows(event: Event) -> str:
    if event.replace is None:
        return ""
    seqs = event.replace.shadowed_seqs
    if not seqs:
        return f"stands at {event.replace.start}"
    named = (
        f"{seqs[0]} to {seqs[-1]}, {len(seqs)} events"
        if len(seqs) > 2
        else ", ".join(map(str, seqs))
    )
    return f"in place of {named}"


def fold(session: Session, at: int | None) -> Iterator[Item]:
    """Yield what the model sees, and where turns and steps begin that hold some of it."""
    messages = map(folded, session.messages(at_seq=at))
    types = (EventType.TURN_START, EventType.STEP_START)
    beginnings = _beginnings(until(session.events(types=types), at), at)
    return _holding(merge(beginnings, messages, key=lambda item: item.position))


def folded(message: FoldedMessage) -> Entry:
    """Return a message of a fold as an entry."""
    return Entry(message.seq, message.position, message.message, message.group)


def _beginnings(events: Iterable[Event], at: int | None) -> Iterator[Beginning]:
    for event in events:
        undone = event.state is EventState.UNDONE and (at is None or (event.state_seq or 0) <= at)
        if not undone and isinstance(body := event.body, TurnStart | StepStart):
            yield Beginning(event.seq, heading(body), is_turn=isinstance(body, TurnStart))


def _holding(items: Iterable[Item]) -> Iterator[Item]:
    """Leave out the beginnings of turns and steps that hold no entry."""
    turn: Item | None = None
    step: Item | None = None
    for item in items:
        if not isinstance(item, Beginning):
            yield from filter(None, (turn, step))
            turn = step = None
            yield item
        elif item.is_turn:
            turn, step = item, None
        else:
            step = item


def watched(item: WatchItem) -> Item | None:
    """Return an element of a watch for a transcript; None for one a person need not see."""
    match item:
        case Event():
            return _logged(item)
        case CaughtUp():
            return None
        case HistoryDropped(whole_from_seq):
            return Remark(None, f"history was dropped; it is whole from {whole_from_seq}")
        case Deleted():
            return Remark(None, "the session was deleted")
