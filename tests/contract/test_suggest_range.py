"""Ranges that can be replaced without splitting what belongs together."""

from __future__ import annotations

import pytest

from tests.contract.calls import Calls
from tests.contract.recovering import suggest
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    replacing_entries,
    result,
    system,
    turn_end,
    turn_start,
    user,
)


@pytest.fixture
def talked(log: Calls) -> Calls:
    """A session of a closed turn with two calls, and an open one."""
    log.append(turn_start(), user("q"), assistant("", "x", "y"), result("1", "x"))
    log.append(result("2", "y"), assistant("done"), turn_end())
    log.append(turn_start(), user("next"), assistant("", "z"))
    return log


def test_a_range_that_fits_is_the_answer(talked: Calls) -> None:
    told = suggest(talked, 1, 5)
    assert told.found
    assert (told.entries.first_seq, told.entries.last_seq) == (1, 5)
    assert (told.positions.start, told.positions.stop) == (1, 5)
    assert (told.count, told.next_seq) == (5, 10)


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [((1, 3), (1, 4)), ((4, 5), (5, 5)), ((3, 3), (2, 4)), ((1, 9), (1, 5)), ((5, 8), (5, 5))],
)
def test_a_suggestion_is_the_nearest_and_can_be_replaced(
    talked: Calls, asked: tuple[int, int], suggested: tuple[int, int]
) -> None:
    told = suggest(talked, *asked)
    assert (told.entries.first_seq, told.entries.last_seq) == suggested
    summary = replacing_entries(system("S"), told.entries.first_seq, told.entries.last_seq)
    answer = talked.append(summary, require_balanced=True, validate_only=True)
    assert len(answer.replaces[0].shadowed_seqs) == told.count
    talked.append(summary, require_balanced=True)
    assert not talked.check(*talked.messages()).HasField("violation")


def test_within_an_open_turn_there_is_none(talked: Calls) -> None:
    told = suggest(talked, 8, 9)
    assert not told.found
    assert not told.HasField("entries")
    assert told.next_seq == 10


def test_positions_are_where_replacements_stand(log: Calls) -> None:
    log.append(*(user(text) for text in "abcd"))
    log.append(replacing_entries(system("S"), 1, 2))
    told = suggest(log, 4, 3)
    assert (told.entries.first_seq, told.entries.last_seq) == (4, 3)
    assert (told.positions.start, told.positions.stop) == (1, 3)
    assert told.count == 2


def test_what_is_not_live_or_the_wrong_way_round_is_refused(talked: Calls) -> None:
    with refused("ENTRY_NOT_LIVE", seq=0):
        suggest(talked, 0, 5)
    with refused("ENTRY_NOT_LIVE", seq=99):
        suggest(talked, 1, 99)
    with refused("INVALID_FIELD") as told:
        suggest(talked, 5, 1)
    assert list(told.fields or {}) == ["entries"]
