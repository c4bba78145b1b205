"""The tool-effect ledger: which dispatched calls are known to have come to an end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from foldlog.core.active import active_path
from foldlog.core.event import EventType, Record


class LineKind(IntEnum):
    """What a line says. The numbers are those of the store."""

    DISPATCHED = 1
    RESOLVED = 2
    REWOUND = 3


class Line(NamedTuple):
    """An event that bears on dispatched calls. `to_seq` is set on rewinds, `call_id` on others."""

    seq: int
    kind: LineKind
    call_id: str = ""
    to_seq: int | None = None


def unresolved(lines: Sequence[Line]) -> set[int]:
    """Return the seqs of the dispatches that count and that no later line that counts resolves.

    Each dispatch of an id counts by itself, since each may have had its effect; whatever resolves
    the id resolves all of them.
    """
    by_seq = {line.seq: line for line in lines}
    records = [Record(line.seq, _TYPES[line.kind], rewind_to=line.to_seq) for line in lines]
    _, active = active_path(records)
    waiting: dict[int, str] = {}
    for record in active:
        line = by_seq[record.seq]
        if line.kind is LineKind.DISPATCHED:
            waiting[line.seq] = line.call_id
        else:
            waiting = {seq: id_ for seq, id_ in waiting.items() if id_ != line.call_id}
    return set(waiting)


_TYPES = {
    LineKind.DISPATCHED: EventType.TOOL_CALL,
    LineKind.RESOLVED: EventType.TOOL_RESULT,
    LineKind.REWOUND: EventType.REWIND,
}


class Ledger:
    """The lines of one session that are kept, and which of its dispatches are unresolved.

    A line is kept if it can matter now or after a later rewind: every dispatch, what resolves one,
    and every rewind after the first dispatch. To take in a rewind all kept lines must be there; for
    anything else the unresolved dispatches are enough.
    """

    def __init__(self, kept: Iterable[tuple[Line, bool]] = ()) -> None:
        stored = list(kept)
        self._lines = [line for line, _ in stored]
        self._known = {line.seq: is_unresolved for line, is_unresolved in stored}
        self._waiting = {line.seq: line.call_id for line, is_waiting in stored if is_waiting}
        self.added: list[Line] = []

    def take(self, line: Line) -> None:
        """Take in the next line of the session."""
        match line.kind:
            case LineKind.DISPATCHED:
                self._keep(line)
                self._waiting[line.seq] = line.call_id
            case LineKind.RESOLVED:
                left = {s: id_ for s, id_ in self._waiting.items() if id_ != line.call_id}
                if len(left) < len(self._waiting):
                    self._keep(line)
                    self._waiting = left
            case LineKind.REWOUND if self._lines:
                self._keep(line)
                waiting = unresolved(self._lines)
                self._waiting = {e.seq: e.call_id for e in self._lines if e.seq in waiting}

    def _keep(self, line: Line) -> None:
        self._lines.append(line)
        self.added.append(line)

    @property
    def unresolved(self) -> frozenset[int]:
        """The seqs of the unresolved dispatches."""
        return frozenset(self._waiting)

    @property
    def changed(self) -> dict[int, bool]:
        """The lines that were there before and changed, by seq, with whether unresolved now."""
        waiting = self._waiting
        return {seq: seq in waiting for seq, was in self._known.items() if was != (seq in waiting)}
