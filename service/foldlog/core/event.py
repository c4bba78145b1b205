"""Event types and records: what a fold needs to know of an event."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from foldlog.core.message import Role


class EventType(IntEnum):
    """What an event is. The numbers are those of the wire and of the store."""

    UNSPECIFIED = 0
    SYSTEM_MESSAGE = 1
    USER_MESSAGE = 2
    ASSISTANT_MESSAGE = 3
    TOOL_RESULT = 4
    TOOL_CALL = 5
    TURN_START = 6
    TURN_END = 7
    STEP_START = 8
    STEP_END = 9
    REQUEST_HEADER = 10
    REWIND = 11
    CUSTOM = 12
    REQUEST = 13


SURFACE_TYPES = frozenset(
    {
        EventType.SYSTEM_MESSAGE,
        EventType.USER_MESSAGE,
        EventType.ASSISTANT_MESSAGE,
        EventType.TOOL_RESULT,
    }
)

TYPE_OF_ROLE: dict[int, EventType] = {
    Role.SYSTEM: EventType.SYSTEM_MESSAGE,
    Role.USER: EventType.USER_MESSAGE,
    Role.ASSISTANT: EventType.ASSISTANT_MESSAGE,
    Role.TOOL: EventType.TOOL_RESULT,
}


class ToolCallPhase(IntEnum):
    """How far a tool call is. The numbers are those of the wire."""

    UNSPECIFIED = 0
    DISPATCHED = 1
    FINISHED = 2
    FAILED = 3

    @property
    def is_dispatch(self) -> bool:
        """Whether it says that the tool was called, and no more; a phase not said does."""
        return self <= ToolCallPhase.DISPATCHED


def phase_of(number: int) -> ToolCallPhase:
    """Return a phase; one of a newer release says no more than that the tool was called."""
    try:
        return ToolCallPhase(number)
    except ValueError:
        return ToolCallPhase.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class PositionRange:
    """Positions from start to stop, both ends in."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Record:
    """An event without its body. `rewind_to` is set on rewinds, `replace` on replaces."""

    seq: int
    type: int
    replace: PositionRange | None = None
    rewind_to: int | None = None

    @property
    def is_surface(self) -> bool:
        """Whether the event projects into the model-visible list."""
        return self.type in SURFACE_TYPES

    @property
    def position(self) -> int:
        """Where the event stands on the surface: its own seq, or the start of what it replaced."""
        return self.seq if self.replace is None else self.replace.start
