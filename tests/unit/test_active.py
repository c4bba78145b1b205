"""The active log, by example: what counts after rewinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from foldlog.core.active import active_by_definition, active_path
from foldlog.core.event import EventType, Record


def message(seq: int) -> Record:
    return Record(seq, EventType.USER_MESSAGE)


def rewind(seq: int, to_seq: int) -> Record:
    return Record(seq, EventType.REWIND, rewind_to=to_seq)


CASES: dict[str, tuple[list[Record], list[int]]] = {
    "nothing": ([], []),
    "no rewind": ([message(0), message(1)], [0, 1]),
    "a rewind undoes what follows its target": (
        [message(0), message(1), message(2), rewind(3, 0)],
        [0],
    ),
    "a rewind to where the log stands undoes nothing": ([message(0), rewind(1, 0)], [0]),
    "what follows a rewind counts": ([message(0), message(1), rewind(2, 0), message(3)], [0, 3]),
    "a rewind to -1 leaves nothing": ([message(0), message(1), rewind(2, -1)], []),
    "a rewind into a gap goes to the last event before it": (
        [message(0), message(4), message(9), rewind(10, 7)],
        [0, 4],
    ),
    "a rewind to before the first event leaves nothing": ([message(5), rewind(6, 2)], []),
    "a rewind into an undone part brings it back": (
        [message(0), message(1), message(2), rewind(3, 0), message(4), rewind(5, 1)],
        [0, 1],
    ),
    "a rewind to a rewind is one to its target": (
        [message(0), message(1), rewind(2, 0), message(3), rewind(4, 2)],
        [0],
    ),
    "a rewind to after a rewind": (
        [message(0), message(1), rewind(2, 0), message(3), message(4), rewind(5, 3)],
        [0, 3],
    ),
    "rewinds within what another brings back": (
        [message(0), message(1), rewind(2, 0), message(3), rewind(4, -1), message(5), rewind(6, 3)],
        [0, 3],
    ),
    "bookkeeping is rewound too": (
        [message(0), Record(1, EventType.REQUEST_HEADER), rewind(2, 0)],
        [0],
    ),
}


def _walked(records: Sequence[Record]) -> list[Record]:
    target, later = active_path(records)
    assert target is None
    return later


@pytest.mark.parametrize("active", [active_by_definition, _walked])
@pytest.mark.parametrize(("records", "seqs"), CASES.values(), ids=CASES)
def test_what_counts(
    active: Callable[[Sequence[Record]], list[Record]], records: list[Record], seqs: list[int]
) -> None:
    assert [record.seq for record in active(records)] == seqs


def test_a_walk_stops_at_a_rewind_to_before_the_known_point() -> None:
    later = [message(10), rewind(11, 4), message(12)]
    assert active_path(later, 9) == (4, [message(12)])


def test_a_walk_stops_at_a_rewind_to_nothing_before_the_known_point() -> None:
    assert active_path([rewind(10, -1), message(11)], 9) == (-1, [message(11)])


@pytest.mark.parametrize("to_seq", [9, 10, 12])
def test_a_rewind_to_the_known_point_or_into_the_gap_after_it_begins_there(to_seq: int) -> None:
    later = [message(13), rewind(14, to_seq), message(15)]
    assert active_path(later, 9) == (None, [message(15)])


def test_a_rewind_before_the_known_point_that_is_itself_undone_does_not_matter() -> None:
    later = [message(10), rewind(11, 3), message(12), rewind(13, 10)]
    assert active_path(later, 9) == (None, [message(10)])


def test_many_rewinds_are_walked_once() -> None:
    log = [message(0)]
    for seq in range(1, 40_000, 2):
        log += [message(seq), rewind(seq + 1, seq - 1)]
    assert active_path(log) == (None, [message(0)])
