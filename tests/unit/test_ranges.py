"""Suggested ranges: held to a search over all ranges."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from foldlog.core.message import Message, Role
from foldlog.core.ranges import IndexRange, nearest_range
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.placed import unpaired_by

SUMMARY = Message(Role.SYSTEM, "S")


@dataclass(frozen=True, slots=True)
class Said:
    """An entry in short: a user message, calls, or a result."""

    role: int = Role.USER
    call_ids: tuple[str | None, ...] = ()
    tool_call_id: str | None = None


def calls(*ids: str) -> Said:
    return Said(Role.ASSISTANT, ids)


def result(id_: str) -> Said:
    return Said(Role.TOOL, tool_call_id=id_)


USER = Said()


def can_be_replaced(surface: list[Said], range_: IndexRange, open_turn_at: int | None) -> bool:
    """Whether a summary could take the place of the range."""
    if open_turn_at is not None and range_.last >= open_turn_at:
        return False
    covered = slice(range_.first, range_.last + 1)
    return unpaired_by(surface, covered, SUMMARY) == ((), ())


def by_definition(
    surface: list[Said], asked: IndexRange, open_turn_at: int | None
) -> IndexRange | None:
    """Return the nearest range by looking at all of them."""

    def cost(found: IndexRange) -> tuple[int, int, int, int]:
        wanted = set(range(asked.first, asked.last + 1))
        given = set(range(found.first, found.last + 1))
        return len(wanted ^ given), len(given - wanted), found.first, found.last

    ranges = (
        IndexRange(first, last)
        for first in range(asked.last + 1)
        for last in range(max(first, asked.first), len(surface))
    )
    fitting = [each for each in ranges if can_be_replaced(surface, each, open_turn_at)]
    return min(fitting, key=cost, default=None)


IDS = st.sampled_from("abc")
ENTRIES = st.one_of(
    st.just(USER),
    st.lists(IDS, max_size=3).map(lambda ids: calls(*ids)),
    IDS.map(result),
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Said], IndexRange, int | None]:
    surface = draw(st.lists(ENTRIES, min_size=1, max_size=14))
    first = draw(st.integers(0, len(surface) - 1))
    last = draw(st.integers(first, len(surface) - 1))
    open_turn_at = draw(st.none() | st.integers(0, len(surface)))
    return surface, IndexRange(first, last), open_turn_at


@given(questions())
def test_the_nearest_range_is_that_of_the_search_over_all(
    question: tuple[list[Said], IndexRange, int | None],
) -> None:
    assert nearest_range(*question) == by_definition(*question)


CONVERSATION = [
    USER,
    calls("x", "y"),
    result("x"),
    result("y"),
    USER,
    calls("z"),
    result("z"),
    USER,
]


@pytest.mark.parametrize(
    ("asked", "open_turn_at", "found"),
    [
        pytest.param((1, 3), None, (1, 3), id="whole pairs stay"),
        pytest.param((2, 4), None, (1, 4), id="the call is taken in"),
        pytest.param((1, 2), None, (1, 3), id="the last result is taken in"),
        pytest.param((0, 1), None, (0, 0), id="of equals, nothing is added"),
        pytest.param((2, 2), None, (1, 3), id="a lone result brings its call and its siblings"),
        pytest.param((6, 6), None, (5, 6), id="a lone result brings its call"),
        pytest.param((0, 7), 4, (0, 3), id="an open turn is left out"),
        pytest.param((5, 6), 4, None, id="within an open turn there is none"),
        pytest.param((0, 1), 2, (0, 0), id="a call whose results are in the open turn stays"),
        pytest.param((1, 1), 2, None, id="unless nothing else was asked for"),
    ],
)
def test_suggestions(
    asked: tuple[int, int], open_turn_at: int | None, found: tuple[int, int] | None
) -> None:
    expected = None if found is None else IndexRange(*found)
    assert nearest_range(CONVERSATION, IndexRange(*asked), open_turn_at) == expected


def test_a_thousand_calls_in_one_message_are_found_whole() -> None:
    ids = [f"c{number}" for number in range(1_000)]
    surface = [USER, calls(*ids), *map(result, ids), USER]
    assert nearest_range(surface, IndexRange(400, 600)) == IndexRange(1, 1_001)
