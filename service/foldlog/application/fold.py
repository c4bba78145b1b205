"""The fold of one session: surface with digests, header and turns, kept up event by event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from foldlog.core.digest import ZERO, extend
from foldlog.core.errors import EventCorruptError
from foldlog.core.event import EventType, PositionRange
from foldlog.core.message import Role
from foldlog.core.pairing import Settled
from foldlog.core.surface import Surface
from foldlog.core.turns import TurnState

LIVE_BYTES = 520  # what one entry costs in memory, about
MAX_TURN_MARKS = 4_096


class RowRef(NamedTuple):
    """Where a row is stored."""

    aggregate_id: UUID
    version: int


class Live(NamedTuple):
    """A surface event as the fold keeps it: no content, but what pairing and digests need.

    A dropped one whose body is gone has an empty digest; one that a fork reads still has it.
    """

    position: int
    seq: int
    row: RowRef
    role: int
    digest: bytes
    call_ids: tuple[str | None, ...] = ()
    tool_call_id: str | None = None
    is_dropped: bool = False
    damage: EventCorruptError | None = None

    def is_gone_for(self, reader: UUID) -> bool:
        """Whether a session cannot see it: its body is gone, or the session dropped it itself."""
        return not self.digest or (self.is_dropped and self.row.aggregate_id == reader)


@dataclass(frozen=True, slots=True)
class Shadow:
    """A replace of the log."""

    seq: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Rewound:
    """A rewind of the log."""

    seq: int
    to_seq: int


@dataclass(frozen=True, slots=True)
class EventRef:
    """Where an event is stored, such as the latest request header."""

    seq: int
    row: RowRef


class Passed(NamedTuple):
    """An event as a fold takes it in. `live` is set on surface events, `rewind_to` on rewinds."""

    seq: int
    type: int
    row: RowRef
    live: Live | None = None
    replace: PositionRange | None = None
    rewind_to: int | None = None
    damage: EventCorruptError | None = None


class Fold:
    """What the log means at a point. Rewinds are given the fold they go back to."""

    def __init__(self) -> None:
        self.next_seq = 0
        self.surface: Surface[Live] = Surface()
        self.replaces: list[Shadow] = []
        self.rewinds: list[Rewound] = []
        self.header: EventRef | None = None
        self.step: EventRef | None = None  # the latest of the log, be it undone or not
        self.turns = TurnState()
        self._turn_marks: list[tuple[int, TurnState]] = [(-1, self.turns)]
        self._settled = Settled()
        self._lost: EventCorruptError | None = None
        self._suspects: list[Live] = []
        self._running: list[bytes] = [ZERO]
        self.run_starts: list[int] = []
        self._run_through = 0
        self._called: set[str | None] = set()
        self._paired = 0
        self._orphan: Live | None = None

    def copy(self) -> Fold:
        """Return an independent fold that shares the entries."""
        twin = Fold()
        twin.next_seq, twin.surface = self.next_seq, self.surface.copy()
        twin.replaces, twin.rewinds = self.replaces.copy(), self.rewinds.copy()
        twin.header, twin.turns, twin.step = self.header, self.turns, self.step
        twin._running = self._running.copy()
        twin.run_starts, twin._run_through = self.run_starts.copy(), self._run_through
        twin._turn_marks = self._turn_marks.copy()
        twin._lost, twin._suspects = self._lost, self._suspects.copy()
        return twin

    @property
    def damage(self) -> EventCorruptError | None:
        """What keeps the fold from being known: an event it needs is damaged."""
        if self._lost is not None:
            return self._lost
        standing = (s for s in self._suspects if self.surface.index_of(s.seq) is not None)
        return next((suspect.damage for suspect in standing), None)

    def sound(self) -> Fold:
        """Return the fold. Raises EventCorruptError if an event it needs is damaged."""
        damage = self.damage
        if damage is not None:
            raise damage
        return self

    @property
    def size_bytes(self) -> int:
        """About what the fold costs in memory."""
        return 1_000 + LIVE_BYTES * len(self.surface) + 50 * len(self.replaces)

    def take(self, event: Passed) -> list[Live]:
        """Take in the next event, which is no rewind, and return what it shadowed."""
        shadowed: list[Live] = []
        if event.damage is not None:
            self._lost = self._lost or event.damage
        elif event.live is not None:
            shadowed = self._place(event.live, event.replace)
        elif event.type == EventType.REQUEST_HEADER:
            self.header = EventRef(event.seq, event.row)
        elif event.type == EventType.STEP_START:
            self.step = EventRef(event.seq, event.row)
        self._turn(event.seq, self.turns.after(event.type, event.seq))
        self.next_seq = event.seq + 1
        return shadowed

    def _turn(self, seq: int, turns: TurnState) -> None:
        if turns is self.turns:
            return
        self.turns = turns
        self._turn_marks.append((seq, turns))
        if len(self._turn_marks) > MAX_TURN_MARKS:
            del self._turn_marks[: MAX_TURN_MARKS // 2]

    def begin_at(self, next_seq: int, turns: TurnState) -> None:
        """Stand where a checkpoint stood: of the turns before it nothing is known."""
        self.next_seq, self.turns = next_seq, turns
        self._turn_marks = [(next_seq - 1, turns)]

    def go_back(self, event: Passed, target: Fold) -> None:
        """Take in a rewind: the surface, header and turns become those of the target."""
        assert event.rewind_to is not None
        self.surface = target.surface.copy()
        self._running = target._running.copy()
        self.run_starts, self._run_through = target.run_starts.copy(), target._run_through
        self._forget_pairs()
        self._settled = Settled()
        self.header = target.header
        self._turn(event.seq, target.turns)
        self._lost, self._suspects = target._lost, target._suspects.copy()
        self.rewinds.append(Rewound(event.seq, event.rewind_to))
        self.next_seq = event.seq + 1

    def _place(self, live: Live, replace: PositionRange | None) -> list[Live]:
        shadowed: list[Live] = []
        if replace is None:
            index = self.surface.insert(live)
        else:
            index, shadowed = self.surface.replace(live, replace.stop)
            self.replaces.append(Shadow(live.seq, replace.start, replace.stop))
        if live.damage is not None:
            self._suspects.append(live)
        if index < self._paired:
            self._forget_pairs()
        self._settled.changed(index)
        self._settled.keep_up(self.surface.entries)
        if index < self._run_through:
            del self.run_starts[bisect_left(self.run_starts, index) :]
            self._run_through = index
        # A change at the front can change which message leads, so the digests begin anew.
        del self._running[max(index - 1, 0) + 1 :]
        return shadowed

    def first_orphan(self) -> Live | None:
        """Return the first result on the surface that answers no call before it.

        O(new) once computed.
        """
        self._pair(len(self.surface))
        return self._orphan

    def _pair(self, count: int) -> None:
        """Look at so many more entries for the first orphan."""
        entries = self.surface.entries
        until = min(self._paired + count, len(entries))
        while self._orphan is None and self._paired < until:
            entry = entries[self._paired]
            if entry.role == Role.ASSISTANT:
                self._called.update(entry.call_ids)
            elif entry.role == Role.TOOL and (
                entry.tool_call_id is None or entry.tool_call_id not in self._called
            ):
                self._orphan = entry
            self._paired += 1

    def _forget_pairs(self) -> None:
        self._called, self._paired, self._orphan = set(), 0, None

    @property
    def has_leading_system(self) -> bool:
        """Whether the model sees a system message first."""
        return len(self.surface) > 0 and self.surface[0].role == Role.SYSTEM

    def digest(self, count: int | None = None) -> tuple[int, bytes, bool]:
        """Return (count, digest, leading_system) over the first messages but a leading system one.

        The count must not exceed the number of messages after it. O(1) once computed.
        """
        leading = self.has_leading_system
        entries = self.surface.entries
        wanted = len(entries) - leading if count is None else count
        running = self._running
        while len(running) <= wanted:
            running.append(extend(running[-1], entries[len(running) - 1 + leading].digest))
        return wanted, running[wanted], leading

    def advance(self, count: int) -> bool:
        """Compute at most so many of the digests and pairs that lack, and return whether none does.

        Before digest() and first_orphan() so that no turn of the loop takes long.
        """
        entries = self.surface.entries
        lacking = len(entries) - self.has_leading_system + 1 - len(self._running)
        self.digest(len(self._running) - 1 + min(max(lacking, 0), count))
        self._pair(count)
        self._settled.reach(entries, len(entries) if lacking <= count else len(self._running))
        return lacking <= count and (self._orphan is not None or self._paired == len(entries))

    def find_runs(self, count: int) -> bool:
        """Look at so many more entries for `run_starts`, and return whether all were looked at.

        A run is of entries that follow each other by position, by seq and by version of a session.
        """
        entries = self.surface.entries
        first, stop = self._run_through, min(self._run_through + count, len(entries))
        for index in range(first, stop):
            if index == 0 or not _continues(entries[index - 1], entries[index]):
                self.run_starts.append(index)
        self._run_through = stop
        return stop == len(entries)

    def open_at(self, seq: int) -> tuple[TurnState, Sequence[Live]] | None:
        """Return the turns after a seq, and entries in which all calls open there are found.

        None where that seq was on another path, or the entries changed since, or it is too long
        ago: then only the log can tell. O(log n) and what was said since all calls were answered.
        """
        changes = *(s.seq for s in self.replaces[-1:]), *(r.seq for r in self.rewinds[-1:])
        mark = bisect_right(self._turn_marks, seq, key=itemgetter(0)) - 1
        if self.damage is not None or any(changed > seq for changed in changes) or mark < 0:
            return None
        entries = self.surface.entries
        count = self.surface.covered(0, seq).stop
        return self._turn_marks[mark][1], entries[self._settled.before(entries, count) : count]

    def active_ranges(self) -> list[tuple[int, int]]:
        """Return the seqs that count now as ascending ranges, both ends in."""
        return active_ranges(self.rewinds, self.next_seq - 1)


def _continues(before: Live, after: Live) -> bool:
    (position, seq, row), (next_position, next_seq, next_row) = before[:3], after[:3]
    return (
        position + 1 == next_position
        and seq + 1 == next_seq
        and row.version + 1 == next_row.version
        and row.aggregate_id == next_row.aggregate_id
    )


def active_ranges(rewinds: Sequence[Rewound], head: int) -> list[tuple[int, int]]:
    """Return the seqs that count at a head as ascending ranges, both ends in. O(rewinds)."""
    ranges = []
    for rewind in reversed(rewinds):
        if rewind.seq > head:
            continue
        if rewind.seq < head:
            ranges.append((rewind.seq + 1, head))
        head = rewind.to_seq
    if head >= 0:
        ranges.append((0, head))
    return ranges[::-1]


def holds(ranges: Sequence[tuple[int, int]], seq: int) -> bool:
    """Return whether a seq lies in one of ascending ranges, both ends in. O(log n)."""
    index = bisect_left(ranges, seq, key=lambda r: r[1])
    return index < len(ranges) and ranges[index][0] <= seq


class Marks:
    """Tells which events of a log count now, and why others do not."""

    def __init__(self, fold: Fold) -> None:
        self._rewinds = frozenset(rewind.seq for rewind in fold.rewinds)
        self._newest_rewind = fold.rewinds[-1].seq if fold.rewinds else -1
        self._active = fold.active_ranges()
        self._shadows = [s for s in fold.replaces if holds(self._active, s.seq)]

    def undone_by(self, seq: int) -> int | None:
        """Return the seq of the rewind that jumps over an event, or None if the event counts.

        Of several rewinds that undid it, the one without which the log would go on from there.
        O(log n).
        """
        if seq in self._rewinds or holds(self._active, seq):
            return None
        index = bisect_left(self._active, seq, key=lambda r: r[1])
        if index == len(self._active):
            return self._newest_rewind
        return self._active[index][0] - 1  # a rewind's own seq lies before what follows it

    def shadowed_by(self, seq: int, position: int) -> int | None:
        """Return the seq of the first active replace that shadowed a surface event, or None."""
        first = bisect_left(self._shadows, seq + 1, key=lambda s: s.seq)
        for shadow in self._shadows[first:]:
            if shadow.start <= position <= shadow.stop:
                return shadow.seq
        return None
