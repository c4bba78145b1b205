"""The runs of a surface that are kept up as a fold changes, against those of the whole surface."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from foldlog.application.fold import Fold, Live, Passed, RowRef
from foldlog.core.event import EventType

from tests.unit.test_open_at import ending_at, said

PARENT = UUID(int=8)


def steps(entry: Live) -> tuple[UUID, int, int, int]:
    """Return what is the same for all of a run but for how far they are in it."""
    return entry.row.aggregate_id, entry.position, entry.seq, entry.row.version


def starts(entries: Sequence[Live]) -> list[int]:
    """Return where runs start, from their definition."""
    after = [
        index
        for index, (one, other) in enumerate(pairwise(entries), 1)
        if steps(other) != (one.row.aggregate_id, *(number + 1 for number in steps(one)[1:]))
    ]
    return [0, *after] if entries else []


def test_runs_that_are_kept_up_are_those_of_the_surface() -> None:
    rng = random.Random(5)
    for _ in range(300):
        log: list[Passed] = []
        fold = Fold()
        forked_at = rng.randrange(30)
        for seq in range(rng.randrange(1, 45)):
            event = said(rng, seq)
            if seq < forked_at and event.live is not None:
                row = RowRef(PARENT, seq + 1)
                event = event._replace(row=row, live=event.live._replace(row=row))
            if seq > 0 and rng.random() < 0.05:
                to = rng.randrange(-1, seq)
                event = Passed(seq, EventType.REWIND, RowRef(PARENT, seq + 1), rewind_to=to)
            log.append(event)
            if event.rewind_to is None:
                fold.take(event)
            else:
                fold.go_back(event, ending_at(log, event.rewind_to + 1))
            if rng.random() < 0.3:
                fold.find_runs(rng.randrange(8))
            if rng.random() < 0.1:
                fold = fold.copy()
        twin = fold.copy()
        assert twin.find_runs(len(twin.surface))
        assert twin.run_starts == starts(twin.surface.entries)
