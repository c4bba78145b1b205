"""Which turns and which step are open. Structure decides; numbers in the events are advisory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foldlog.core.event import EventType

MAX_OPEN_TURNS = 64


@dataclass(frozen=True, slots=True)
class TurnState:
    """The seqs of the open turns, the innermost last, and of the innermost open step."""

    open_turns: tuple[int, ...] = ()
    open_step_seq: int | None = None

    @property
    def open_turn_seq(self) -> int | None:
        """The seq at which the innermost open turn began."""
        return self.open_turns[-1] if self.open_turns else None

    def after(self, type: int, seq: int) -> TurnState:
        """Return the state after an event. An end that matches no start is ignored.

        At most MAX_OPEN_TURNS are remembered: beyond it the outermost is forgotten.
        """
        match type:
            case EventType.TURN_START:
                return replace(self, open_turns=(*self.open_turns, seq)[-MAX_OPEN_TURNS:])
            case EventType.TURN_END:
                return self._after_turn_end()
            case EventType.STEP_START:
                return replace(self, open_step_seq=seq)
            case EventType.STEP_END:
                return self._without_step()
        return self

    def _after_turn_end(self) -> TurnState:
        if not self.open_turns:
            return self
        begun = self.open_turns[-1]
        step = self.open_step_seq
        if step is not None and step > begun:
            step = None
        return TurnState(self.open_turns[:-1], step)

    def _without_step(self) -> TurnState:
        return self if self.open_step_seq is None else replace(self, open_step_seq=None)
