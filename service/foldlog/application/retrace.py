"""A log gone through again from its first row, outside of every cache, with a stop where asked.

One scan of the stored rows takes down what folds need; the folds at any number of places are then
made in one go over that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foldlog.application.domain import Segment
from foldlog.application.fold import Fold, Live, Passed, RowRef
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
    """What an event changed of the request: from which message on, and whether the header."""

    seq: int
    type: int
    index: int
    is_header: bool


class Retraced:
    """The fold of a scanned log as it moves from place to place."""

    def __init__(self, scanned: Scanned) -> None:
        self._events = scanned.passed
        self._count = 0
        self.fold = Fold()
        self.touches: list[Touch] = []

    def move(self, next_seq: int) -> Fold:
        """Take in the events below a seq and return the fold. From call to call it never falls."""
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
                self.touches.append(Touch(event.seq, event.type, index, False))
            self.fold.take(event)
        else:
            if event.type == EventType.REQUEST_HEADER:
                count = len(self.fold.surface)
                self.touches.append(Touch(event.seq, event.type, count, True))
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
        before, fold.next_seq = self.fold, event.seq + 1
        index = common_count(before.surface.entries, fold.surface.entries)
        is_header = before.header != fold.header
        self.touches.append(Touch(event.seq, event.type, index, is_header))
        self.fold = fold


def common_count(a: Sequence[Live], b: Sequence[Live]) -> int:
    """Return with how many entries, the same rows, two surfaces begin."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if one is not other and one.row != other.row:
            return index
    return min(len(a), len(b))
