"""A log gone through again from its first row, outside of every cache, with a stop where asked.

One scan of the stored rows takes down what folds need; the folds at any number of places are then
made in one go over that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from foldlog.application.domain import Segment
from foldlog.application.fold import EventRef, Fold, Live, Passed, RowRef
from foldlog.application.rows import Row, RowReader, passed, request_next_seq
from foldlog.core.active import active_path
from foldlog.core.event import EventType, Record


@dataclass(frozen=True, slots=True)
class StepPlace:
    """A step of the log, and where its request is built."""

    seq: int
    next_seq: int


@dataclass(slots=True)
class Scanned:
    """What a scan of a log took down."""

    passed: list[Passed] = field(default_factory=list)
    steps: list[StepPlace] = field(default_factory=list)
    records: list[tuple[int, RowRef]] = field(default_factory=list)


def scan(reader: RowReader, spans: Sequence[Segment]) -> Scanned:
    """Read every row of a lineage. Blocking. A damaged one is taken down with its damage."""
    found = Scanned()
    for row in reader.walk(spans):
        if row.is_event:
            _take_down(found, row, spans)
    return found


def _take_down(found: Scanned, row: Row, spans: Sequence[Segment]) -> None:
    envelope = row.envelope
    found.passed.append(passed(row))
    if envelope.type == EventType.STEP_START:
        found.steps.append(StepPlace(envelope.seq, request_next_seq(row, spans)))
    elif envelope.type == EventType.REQUEST:
        found.records.append((envelope.seq, row.ref))


@dataclass(frozen=True, slots=True)
class Touch:
    """What an event changed of the request: from which message on, and whether the header.

    `earlier` is the touch before it in the active log.
    """

    seq: int
    type: int
    index: int
    is_header: bool
    earlier: Touch | None = field(default=None, repr=False)


class Retraced:
    """The fold of a scanned log as it moves from place to place, and what touched it since one."""

    def __init__(self, scanned: Scanned) -> None:
        self._events = scanned.passed
        self._count = 0
        self.fold = Fold()
        self._place = 0
        self._from_seq = 0
        self._entries: tuple[Live, ...] = ()
        self._header: EventRef | None = None
        self._states: list[tuple[int, Touch | None]] = []

    def follow(self, entries: tuple[Live, ...]) -> None:
        """Take down from here on what touches the request; `entries` are those of the fold now."""
        self._from_seq, self._entries, self._header = self._place, entries, self.fold.header
        self._states.clear()

    def touches(self) -> Iterator[Touch]:
        """Yield what touched the request since `follow` and counts now, the newest first.

        A rewind counts if it took the log back behind that place; within what came after, it only
        makes what it undid count no more.
        """
        touch = self._states[-1][1] if self._states else None
        while touch is not None:
            yield touch
            touch = touch.earlier

    def _touch(self, event: Passed, index: int, is_header: bool) -> None:
        earlier = self._states[-1][1] if self._states else None
        touch = Touch(event.seq, event.type, index, is_header, earlier)
        self._states.append((event.seq, touch))

    def move(self, next_seq: int) -> Fold:
        """Take in the events below a seq and return the fold. From call to call it never falls."""
        self._place = next_seq
        while self._count < len(self._events) and self._events[self._count].seq < next_seq:
            event = self._events[self._count]
            self._count += 1
            self._take(event)
        return self.fold

    def _take(self, event: Passed) -> None:
        if event.rewind_to is not None:
            self._rewind(event)
        elif event.live is not None:
            index = self._index(event)
            if index < len(self.fold.surface):
                self._touch(event, index, is_header=False)
            self.fold.take(event)
        else:
            if event.type == EventType.REQUEST_HEADER:
                self._touch(event, len(self.fold.surface), is_header=True)
            self.fold.take(event)

    def _index(self, event: Passed) -> int:
        assert event.live is not None
        surface, range_ = self.fold.surface, event.replace
        index: int = (
            surface.covered(0, event.live.position).stop
            if range_ is None
            else surface.covered(range_.start, range_.stop).start
        )
        return index

    def _rewind(self, event: Passed) -> None:
        events = self._events[: self._count]
        records = [Record(e.seq, e.type, e.replace, e.rewind_to) for e in events]
        _, active = active_path(records)
        of_seq = {e.seq: e for e in events}
        fold = Fold()
        for record in active:
            fold.take(of_seq[record.seq])
        fold.next_seq = event.seq + 1
        self.fold = fold
        self._touch_back(event)

    def _touch_back(self, event: Passed) -> None:
        assert event.rewind_to is not None
        if event.rewind_to >= self._from_seq - 1:
            known = bisect_right(self._states, event.rewind_to, key=itemgetter(0))
            self._states.append((event.seq, self._states[known - 1][1] if known else None))
            return
        index = common_count(self._entries, self.fold.surface.entries)
        is_header = self._header != self.fold.header
        touch = Touch(event.seq, event.type, index, is_header)
        self._states.append((event.seq, touch))


def common_count(a: Sequence[Live], b: Sequence[Live]) -> int:
    """Return with how many entries, the same rows, two surfaces begin."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if one is not other and one.row != other.row:
            return index
    return min(len(a), len(b))
