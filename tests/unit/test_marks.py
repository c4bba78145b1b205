"""Which rewind an undone event is told to be undone by."""

from __future__ import annotations

import random

from foldlog.application.fold import Fold, Marks, Rewound, active_ranges, holds


def _marks(*rewinds: tuple[int, int], next_seq: int) -> Marks:
    fold = Fold()
    fold.rewinds = [Rewound(seq, to_seq) for seq, to_seq in rewinds]
    fold.next_seq = next_seq
    return Marks(fold)


def test_an_event_is_undone_by_the_rewind_that_jumps_over_it() -> None:
    marks = _marks((10, 3), (20, 15), next_seq=25)
    told = [marks.undone_by(seq) for seq in (3, 5, 9, 10, 12, 15, 17, 20, 22)]
    assert told == [None, 10, 10, None, None, None, 20, None, None]


def test_after_a_rewind_at_the_end_the_newest_is_named() -> None:
    assert _marks((5, -1), next_seq=6).undone_by(2) == 5


def test_marks_agree_with_the_active_log_whatever_the_rewinds() -> None:
    rng = random.Random(7)
    for _ in range(300):
        rewinds, seq = [], 0
        for _ in range(rng.randrange(12)):
            seq += rng.randrange(1, 6)
            rewinds.append((seq, rng.randrange(-1, seq)))
        head = seq + rng.randrange(4)
        marks = _marks(*rewinds, next_seq=head + 1)
        active = active_ranges([Rewound(*each) for each in rewinds], head)
        own = {each for each, _ in rewinds}
        for each in range(head + 1):
            cause = marks.undone_by(each)
            assert (cause is None) == (each in own or holds(active, each))
            assert cause is None or (cause in own and cause > each)
