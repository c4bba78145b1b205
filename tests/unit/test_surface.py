"""The surface, by example: replaces, addressing, projection of types."""

from __future__ import annotations

import pytest
from foldlog.core.errors import EmptyRangeError, EntryNotLiveError, InvalidFieldError
from foldlog.core.event import SURFACE_TYPES, TYPE_OF_ROLE, EventType, PositionRange, Record
from foldlog.core.message import Role
from foldlog.core.surface import Surface, surface_by_definition
from foldlog.v1 import event_pb2, message_pb2

from tests.unit.logs import fold, take


def log(*steps: tuple[int, int] | None) -> list[Record]:
    """Return a log: None is a plain message, (start, stop) a replace."""
    return [
        Record(seq, EventType.USER_MESSAGE, step and PositionRange(*step))
        for seq, step in enumerate(steps)
    ]


def surface_of(records: list[Record]) -> Surface[Record]:
    surface: Surface[Record] = Surface()
    for record in records:
        take(surface, record)
    return surface


CASES: dict[str, tuple[list[Record], list[int]]] = {
    "appended in order": (log(None, None, None), [0, 1, 2]),
    "a replace stands at its start": (log(None, None, None, (0, 1)), [3, 2]),
    "a replace of the middle": (log(None, None, None, (1, 1)), [0, 3, 2]),
    "a replace of a replace": (log(None, None, (0, 1), (0, 0)), [3]),
    "a replace is addressed by its position, not its seq": (
        log(None, None, (0, 0), (2, 2)),
        [2, 1, 3],
    ),
    "a later replace un-hides nothing": (log(None, None, None, (0, 2), (0, 0)), [4]),
    "a range over hidden positions": (log(None, None, None, (0, 1), (1, 2)), [3, 4]),
    "a wide range": (log(None, (0, 0), None, (2, 2), (0, 3)), [4]),
    "a range of nothing inserts": (log(None, None, (0, 1), (1, 1), None), [2, 3, 4]),
}


@pytest.mark.parametrize(("records", "seqs"), CASES.values(), ids=CASES)
def test_the_surface_after_replaces(records: list[Record], seqs: list[int]) -> None:
    assert [record.seq for record in fold(records)] == seqs
    assert [record.seq for record in surface_by_definition(records)] == seqs


def test_only_the_four_surface_types_stand_on_it() -> None:
    records = [Record(int(type_), type_) for type_ in EventType if type_]
    assert [record.type for record in fold(records)] == sorted(SURFACE_TYPES)
    assert surface_by_definition(records) == fold(records)


def test_replace_tells_its_place_and_what_it_shadowed() -> None:
    records = log(None, None, None)
    surface = surface_of(records)
    new = Record(3, EventType.SYSTEM_MESSAGE, PositionRange(1, 2))
    assert surface.replace(new, 2) == (1, records[1:])
    assert surface.entries == [records[0], new]
    assert len(surface) == 2
    assert surface[1] is new


def test_a_copy_is_independent() -> None:
    surface = surface_of(log(None, None))
    twin = surface.copy()
    take(twin, Record(2, EventType.USER_MESSAGE, PositionRange(0, 1)))
    assert [entry.seq for entry in surface] == [0, 1]
    assert [entry.seq for entry in twin] == [2]


def test_an_entry_is_found_by_its_seq_wherever_it_stands() -> None:
    surface = surface_of(log(None, None, (0, 0), None))
    assert [surface.index_of(seq) for seq in range(5)] == [None, 1, 0, 2, None]


def test_entries_resolve_to_positions_in_surface_order() -> None:
    surface = surface_of(log(None, None, None, (0, 1)))
    assert surface.resolve(3, 2) == PositionRange(0, 2)
    assert surface.resolve(3, 3) == PositionRange(0, 0)


def test_entries_the_wrong_way_round_are_refused() -> None:
    surface = surface_of(log(None, None, None, (0, 1)))
    with pytest.raises(InvalidFieldError) as refused:
        surface.resolve(2, 3)
    assert list(refused.value.fields) == ["replace.entries"]


@pytest.mark.parametrize(("first", "last", "missing"), [(0, 2, 0), (2, 1, 1), (0, 1, 0), (9, 2, 9)])
def test_an_entry_that_is_not_live_is_refused(first: int, last: int, missing: int) -> None:
    surface = surface_of(log(None, None, None, (0, 1)))
    with pytest.raises(EntryNotLiveError) as refused:
        surface.resolve(first, last)
    assert refused.value.facts == {"seq": missing}


def test_a_range_that_shadows_nothing_is_refused() -> None:
    surface = surface_of(log(None, None, None, (0, 1)))
    surface.require_shadowed(PositionRange(0, 1))
    with pytest.raises(EmptyRangeError) as refused:
        surface.require_shadowed(PositionRange(1, 1))
    assert refused.value.facts == {"start": 1, "stop": 1}


def test_the_cores_numbers_are_the_wires() -> None:
    types = {value.name: value.number for value in event_pb2.EventType.DESCRIPTOR.values}
    assert types == {f"EVENT_TYPE_{each.name}": int(each) for each in EventType}
    roles = {value.name: value.number for value in message_pb2.Role.DESCRIPTOR.values}
    assert roles == {f"ROLE_{each.name}": int(each) for each in Role}


def test_every_role_has_its_surface_type() -> None:
    assert set(TYPE_OF_ROLE) == set(Role) - {Role.UNSPECIFIED}
    assert set(TYPE_OF_ROLE.values()) == SURFACE_TYPES
