"""The incremental surface and the walk over rewinds are held to their definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from foldlog.core.active import active_by_definition, active_path
from foldlog.core.event import EventType, PositionRange, Record
from foldlog.core.surface import Surface, surface_by_definition
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.logs import SURFACE, dropped, fold, random_log, random_record, state, take, traits

CHUNKS = range(24)
LOGS = 1_000  # of each chunk: 24,000 in all


@pytest.mark.parametrize("chunk", CHUNKS)
def test_the_incremental_surface_equals_its_definition(chunk: int) -> None:
    random = Random(chunk)
    for number in range(LOGS):
        log = random_log(random, random.choice((6, 14, 24)))
        base, later = active_path(log)
        active = active_by_definition(log)
        assert (base, later) == (None, active), number
        assert fold(later) == surface_by_definition(active), number


def test_the_random_logs_cover_what_folds_find_hard() -> None:
    random = Random(0)  # the first chunk above
    seen: Counter[str] = Counter()
    for _ in range(LOGS):
        seen.update(traits(random_log(random, random.choice((6, 14, 24)))))
    assert {name: count for name, count in seen.items() if count < 100} == {}
    assert seen.keys() == {
        *("gap", "replace", "replace over replace", "replace of nothing"),
        *("rewind", "rewind to nothing", "rewind into a gap", "rewind into an undone part"),
        *("rewind over a rewind", "rewind to after a rewind"),
    }


@pytest.mark.parametrize("chunk", range(4))
def test_a_surface_that_goes_back_to_its_own_copies_equals_its_definition(chunk: int) -> None:
    random = Random(100 + chunk)
    for _ in range(LOGS // 2):
        log = random_log(random)
        assert _kept_up(log) == surface_by_definition(active_by_definition(log))


def _kept_up(log: Sequence[Record]) -> list[Record]:
    surface: Surface[Record] = Surface()
    copies = [(-1, surface.copy())]
    for record in log:
        if record.rewind_to is None:
            take(surface, record)
        else:
            to_seq = record.rewind_to
            surface = next(copy for seq, copy in reversed(copies) if seq <= to_seq).copy()
        copies.append((record.seq, surface.copy()))
    return list(surface)


@pytest.mark.parametrize("chunk", range(4))
def test_a_walk_from_any_known_point_reaches_the_same_active_log(chunk: int) -> None:
    random = Random(200 + chunk)
    seen: Counter[str] = Counter()
    for _ in range(LOGS // 2):
        log = random_log(random)
        base_seq = random.randint(-1, log[-1].seq)
        target, later = active_path([r for r in log if r.seq > base_seq], base_seq)
        assert target is None or target < base_seq
        known = state(log, base_seq if target is None else target)
        assert known + later == active_by_definition(log)
        seen["before the base" if target is not None else "from the base"] += 1
    assert min(seen.values()) > 50, seen


@pytest.mark.parametrize("chunk", range(4))
def test_a_snapshot_leaves_the_surface_and_later_rewinds_as_they_are(chunk: int) -> None:
    random = Random(300 + chunk)
    seen: Counter[str] = Counter()
    for _ in range(LOGS):
        log = random_log(random, 16)
        head = log[-1].seq
        gone = dropped(log)
        whole = _going_on(random, log, head)
        held = [record for record in whole if record.seq not in gone]
        for seq in range(head, whole[-1].seq + 1):
            assert fold(state(held, seq)) == surface_by_definition(state(whole, seq))
        rewound = any(r.rewind_to is not None for r in whole[len(log) :])
        seen["dropped something, then rewound" if gone and rewound else "other"] += 1
    assert seen["dropped something, then rewound"] > 100, seen


def _going_on(random: Random, log: Sequence[Record], head: int) -> list[Record]:
    """Go on after a snapshot; rewinds go no further back than its head, where history is whole."""
    whole = list(log)
    while len(whole) < len(log) + 8:
        record = random_record(random, whole)
        if record.rewind_to is None or record.rewind_to >= head:
            whole.append(record)
    return whole


def test_forks_of_forks_keep_what_they_were_cut_from() -> None:
    random = Random(400)
    generations = 0
    for _ in range(LOGS):
        log = random_log(random, 12)
        for _ in range(3):
            cut = random.randint(-1, log[-1].seq)
            shared = [record for record in log if record.seq <= cut]
            child = random_log(random, len(shared) + 6, shared, cut + 1)
            parent = random_log(random, len(log) + 6, log)
            assert state(child, cut) == state(parent, cut) == active_by_definition(shared)
            assert fold(active_path(child)[1]) == surface_by_definition(state(child, 10**6))
            log, generations = child, generations + bool(shared)
    assert generations > 2 * LOGS


records = st.lists(
    st.tuples(
        st.sampled_from(["plain", "replace", "rewind", "bookkeeping"]),
        st.integers(0, 2),
        st.integers(0, 100),
        st.integers(0, 100),
    ),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(records)
def test_the_surface_equals_its_definition_on_logs_that_shrink(
    drawn: list[tuple[str, int, int, int]],
) -> None:
    log: list[Record] = []
    seq = -1
    for kind, gap, a, b in drawn:
        seq += 1 + gap
        log.append(_record(kind, seq, a, b))
    active = active_by_definition(log)
    assert fold(active_path(log)[1]) == surface_by_definition(active)


def _record(kind: str, seq: int, a: int, b: int) -> Record:
    if kind == "replace" and seq > 0:
        start = a % seq
        return Record(seq, SURFACE[b % 4], replace=PositionRange(start, start + b % (seq - start)))
    if kind == "rewind":
        return Record(seq, EventType.REWIND, rewind_to=a % (seq + 1) - 1)
    return Record(seq, EventType.CUSTOM if kind == "bookkeeping" else SURFACE[a % 4])
