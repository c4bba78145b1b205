"""The tool-effect ledger: what is kept is enough, held to the definition over the whole log."""

from __future__ import annotations

from foldlog.core.active import active_by_definition
from foldlog.core.event import EventType, Record
from foldlog.core.ledger import Ledger, Line, LineKind, unresolved
from hypothesis import given
from hypothesis import strategies as st

DISPATCHED, RESOLVED, REWOUND = LineKind.DISPATCHED, LineKind.RESOLVED, LineKind.REWOUND


def by_definition(lines: list[Line]) -> set[int]:
    """Return the active dispatches without an active resolving line of their id after them."""
    records = [Record(e.seq, EventType.CUSTOM, rewind_to=e.to_seq) for e in lines]
    counting = {record.seq for record in active_by_definition(records)}
    active = [line for line in lines if line.seq in counting]
    resolved = [(e.seq, e.call_id) for e in active if e.kind is RESOLVED]
    return {
        e.seq
        for e in active
        if e.kind is DISPATCHED
        and not any(seq > e.seq and id_ == e.call_id for seq, id_ in resolved)
    }


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    """Logs with gaps, repeated ids, and rewinds to anywhere before."""
    lines, seq = [], -1
    for _ in range(draw(st.integers(0, 25))):
        seq += draw(st.integers(1, 3))
        kind = draw(st.sampled_from(LineKind))
        if kind is REWOUND:
            lines.append(Line(seq, kind, to_seq=draw(st.integers(-1, seq - 1))))
        else:
            lines.append(Line(seq, kind, draw(st.sampled_from("ab"))))
    return lines


@given(logs())
def test_unresolved_calls_are_those_of_the_definition(lines: list[Line]) -> None:
    assert unresolved(lines) == by_definition(lines)


@given(logs(), st.lists(st.integers(1, 6), min_size=25, max_size=25))
def test_a_ledger_taken_up_again_and_again_is_that_of_the_definition(
    lines: list[Line], sizes: list[int]
) -> None:
    kept: dict[int, tuple[Line, bool]] = {}
    start = 0
    for size in sizes:
        stretch = lines[start : start + size]
        start += size
        has_rewind = any(line.kind is REWOUND for line in stretch)
        needed = [each for each in kept.values() if has_rewind or each[1]]
        ledger = Ledger(needed)
        for line in stretch:
            ledger.take(line)
        for line in ledger.added:
            kept[line.seq] = line, line.seq in ledger.unresolved
        for seq, now in ledger.changed.items():
            kept[seq] = kept[seq][0], now
        so_far = by_definition(lines[:start])
        assert {seq for seq, (_, is_waiting) in kept.items() if is_waiting} == so_far


def test_a_session_that_dispatches_nothing_keeps_nothing() -> None:
    ledger = Ledger()
    for line in (Line(0, RESOLVED, "a"), Line(1, REWOUND, to_seq=0), Line(2, RESOLVED, "b")):
        ledger.take(line)
    assert ledger.added == []


def test_each_dispatch_of_an_id_counts_and_one_result_resolves_all() -> None:
    ledger = Ledger()
    ledger.take(Line(0, DISPATCHED, "a"))
    ledger.take(Line(3, DISPATCHED, "a"))
    assert ledger.unresolved == {0, 3}
    ledger.take(Line(4, RESOLVED, "a"))
    assert ledger.unresolved == frozenset()


def test_a_rewind_undoes_what_resolved_and_one_into_the_undone_part_brings_it_back() -> None:
    ledger = Ledger()
    ledger.take(Line(5, DISPATCHED, "a"))
    ledger.take(Line(7, RESOLVED, "a"))
    ledger.take(Line(8, REWOUND, to_seq=6))
    assert ledger.unresolved == {5}
    ledger.take(Line(9, REWOUND, to_seq=7))
    assert ledger.unresolved == frozenset()
    ledger.take(Line(10, REWOUND, to_seq=4))
    assert ledger.unresolved == frozenset()
