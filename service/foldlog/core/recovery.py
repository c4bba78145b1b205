"""What a crash left open, how risky each lost call is, and what closes it.

A plan is a function of the log alone: the same log gives the same plan, whoever asks and when.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol

from foldlog.core.event import EventType, ToolCallPhase
from foldlog.core.message import Role, ToolCall
from foldlog.core.pairing import unanswered
from foldlog.core.turns import TurnState

INTERRUPTED = "interrupted"


class CallRisk(IntEnum):
    """What is known of a call without a result. The numbers are those of the wire."""

    NOT_STARTED = 1
    OUTCOME_UNKNOWN = 2


RESULT_TEXTS = {
    CallRisk.NOT_STARTED: (
        "[No result: the agent was interrupted before this call was started. The call had no"
        " effect.]"
    ),
    CallRisk.OUTCOME_UNKNOWN: (
        "[No result: the agent was interrupted before one was recorded. The call may have taken"
        " effect, wholly or in part: look before making it again.]"
    ),
}
RISK_NAMES = {
    CallRisk.NOT_STARTED: "tool_not_started",
    CallRisk.OUTCOME_UNKNOWN: "tool_outcome_unknown",
}


class Entry(Protocol):
    """What a plan needs of a live surface event."""

    @property
    def position(self) -> int: ...

    @property
    def seq(self) -> int: ...

    @property
    def role(self) -> int: ...

    @property
    def call_ids(self) -> tuple[str | None, ...]: ...

    @property
    def tool_call_id(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Trace:
    """What a plan needs of an active event, on the surface or not.

    `calls` are an assistant message's, `call_id` is the one that a tool_call event or a result
    names, `number` the worker's own of a turn or a step.
    """

    seq: int
    type: int
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    phase: ToolCallPhase = ToolCallPhase.UNSPECIFIED
    idempotency_key: str | None = None
    number: int | None = None


@dataclass(frozen=True, slots=True)
class OwedCall:
    """A call on the surface without a result. `seq` is that of the message that makes it."""

    call_id: str
    name: str | None
    seq: int
    risk: CallRisk
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn without end, and how many steps of its own it began."""

    seq: int
    number: int | None = None
    step_count: int = 0


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step without end."""

    seq: int
    number: int | None = None


Closer = OwedCall | OpenTurn | OpenStep


@dataclass(frozen=True, slots=True)
class Plan:
    """What is open, the innermost first, and the calls that are owed a result, in call order."""

    open: tuple[OpenTurn | OpenStep, ...] = ()
    owed: tuple[OwedCall, ...] = ()

    @property
    def is_interrupted(self) -> bool:
        """Whether anything is to be closed."""
        return bool(self.open)

    @property
    def open_turn_seqs(self) -> tuple[int, ...]:
        """The seqs of the open turns, the innermost first."""
        return tuple(each.seq for each in self.open if isinstance(each, OpenTurn))

    @property
    def open_step_seq(self) -> int | None:
        """The seq of the innermost open step."""
        return next((each.seq for each in self.open if isinstance(each, OpenStep)), None)

    @property
    def closers(self) -> tuple[Closer, ...]:
        """What closes it, in order: a result per owed call, then the ends, innermost first."""
        return (*self.owed, *self.open)


def interrupted_from(turns: TurnState) -> int | None:
    """Return the seq of the outermost start without end, or None where all is closed.

    A step that no turn encloses counts: its worker logs steps and no turns.
    """
    starts = [*turns.open_turns[:1]]
    if turns.open_step_seq is not None:
        starts.append(turns.open_step_seq)
    return min(starts, default=None)


def plan_recovery(from_seq: int, surface: Sequence[Entry], traces: Iterable[Trace]) -> Plan:
    """Return what is open and owed.

    `traces` are the active events from `interrupted_from` on, ascending; `surface` is the whole
    surface, or its end from the first entry written since then. A call is owed a result if a
    message written since then makes it, that message is on the surface and nothing after it there
    answers it. So one that was compacted away is owed none, and neither is one of a closed turn
    before. Of several calls of one id only the last can be answered by an append. Its risk:

    - a tool_call event names it: OUTCOME_UNKNOWN;
    - its turn logs dispatches, and not this one: NOT_STARTED;
    - the step it was made in has ended: NOT_STARTED;
    - otherwise: OUTCOME_UNKNOWN.
    """
    walk = _Walk()
    for trace in traces:
        walk.take(trace)
    latest = {
        id_: entry.seq
        for entry in surface
        if entry.role == Role.ASSISTANT
        for id_ in entry.call_ids
    }
    owed = tuple(
        walk.owed(entry, id_)
        for entry, id_ in unanswered(surface)
        if entry.seq >= from_seq and latest[id_] == entry.seq
    )
    return Plan(tuple(reversed(walk.open)), owed)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the structure of turns and steps an event stands."""

    from_seq: int
    turn_seq: int | None
    step_seq: int | None


@dataclass(slots=True)
class _Walk:
    """The events of what is open, taken in one by one."""

    open: list[OpenTurn | OpenStep] = field(default_factory=list)
    _places: list[_Place] = field(default_factory=lambda: [_Place(-1, None, None)])
    _ended_steps: set[int] = field(default_factory=set)
    _dispatching_turns: set[int | None] = field(default_factory=set)
    _named: dict[str, list[Trace]] = field(default_factory=dict)
    _answered: dict[str, list[int]] = field(default_factory=dict)
    _names: dict[int, dict[str | None, str | None]] = field(default_factory=dict)

    def take(self, trace: Trace) -> None:
        """Take in the next event."""
        match trace.type:
            case EventType.ASSISTANT_MESSAGE:
                self._names[trace.seq] = {call.id: call.name for call in reversed(trace.calls)}
            case EventType.TOOL_RESULT if trace.call_id is not None:
                self._answered.setdefault(trace.call_id, []).append(trace.seq)
            case EventType.TOOL_CALL:
                self._note_call(trace)
            case _:
                self._move(trace)

    def _note_call(self, trace: Trace) -> None:
        if trace.phase.is_dispatch:
            self._dispatching_turns.add(self._places[-1].turn_seq)
        if trace.call_id is not None:
            self._named.setdefault(trace.call_id, []).append(trace)

    def _move(self, trace: Trace) -> None:
        """Take in a start or an end; an end that matches no start is ignored."""
        match trace.type:
            case EventType.TURN_START:
                self.open.append(OpenTurn(trace.seq, trace.number))
            case EventType.TURN_END:
                self._end_turn()
            case EventType.STEP_START:
                self._start_step(trace)
            case EventType.STEP_END:
                self._end_step()
            case _:
                return
        self._places.append(self._place(trace.seq))

    def _end_turn(self) -> None:
        turns = [i for i, each in enumerate(self.open) if isinstance(each, OpenTurn)]
        if turns:
            del self.open[turns[-1] :]

    def _end_step(self) -> None:
        steps = [i for i, each in enumerate(self.open) if isinstance(each, OpenStep)]
        if steps:
            self._ended_steps.add(self.open.pop(steps[-1]).seq)

    def _start_step(self, trace: Trace) -> None:
        """Begin a step. One before it in the same turn is over, though nobody ended it."""
        if self.open and isinstance(self.open[-1], OpenStep):
            self.open.pop()
        if self.open and isinstance(turn := self.open[-1], OpenTurn):
            self.open[-1] = replace(turn, step_count=turn.step_count + 1)
        self.open.append(OpenStep(trace.seq, trace.number))

    def _place(self, seq: int) -> _Place:
        turns = [each.seq for each in self.open if isinstance(each, OpenTurn)]
        steps = [each.seq for each in self.open if isinstance(each, OpenStep)]
        return _Place(seq, turns[-1] if turns else None, steps[-1] if steps else None)

    def owed(self, entry: Entry, call_id: str) -> OwedCall:
        """Return a call that is owed a result, with its risk."""
        name = self._names.get(entry.seq, {}).get(call_id)
        named = self._named_since(entry, call_id)
        keys = [each.idempotency_key for each in named if each.idempotency_key is not None]
        risk = CallRisk.OUTCOME_UNKNOWN if named else self._risk_where_it_stands(entry)
        return OwedCall(call_id, name, entry.seq, risk, keys[-1] if keys else None)

    def _named_since(self, entry: Entry, call_id: str) -> list[Trace]:
        """Return the tool_call events of the call, not those of an answered one of the same id.

        Judged by where the message stands, so that one rewritten after the dispatch keeps it.
        """
        earlier = [seq for seq in self._answered.get(call_id, ()) if seq < entry.position]
        since = earlier[-1] if earlier else -1
        return [each for each in self._named.get(call_id, ()) if each.seq > since]

    def _risk_where_it_stands(self, entry: Entry) -> CallRisk:
        index = bisect_right(self._places, entry.position, key=lambda place: place.from_seq) - 1
        place = self._places[index]
        if place.turn_seq in self._dispatching_turns or place.step_seq in self._ended_steps:
            return CallRisk.NOT_STARTED
        return CallRisk.OUTCOME_UNKNOWN
