"""Replaces: both addressings, what they answer, and what they refuse."""

from __future__ import annotations

import pytest
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    replacing,
    replacing_entries,
    result,
    system,
    turn_start,
    user,
)

LIVE, SHADOWED = event_pb2.EVENT_STATE_LIVE, event_pb2.EVENT_STATE_SHADOWED


@pytest.fixture
def filled(log: Calls) -> Calls:
    """A session of four user messages."""
    log.append(*(user(text) for text in "abcd"))
    return log


def test_a_replace_shadows_and_stands_at_the_start(filled: Calls) -> None:
    answer = filled.append(replacing(system("S"), 1, 2))
    (told,) = answer.replaces
    assert (told.index, told.seq, told.position, list(told.shadowed_seqs)) == (0, 4, 1, [1, 2])
    assert [(each.seq, each.position) for each in filled.fold()] == [(0, 0), (4, 1), (3, 3)]


def test_entries_and_positions_name_the_same_range(filled: Calls) -> None:
    filled.append(replacing(system("S"), 0, 1))
    answer = filled.append(replacing_entries(system("T"), 4, 2))
    assert list(answer.replaces[0].shadowed_seqs) == [4, 2]
    assert answer.replaces[0].position == 0
    assert filled.surface() == [5, 3]
    replace = filled.events(5)[0].replace
    assert (replace.start, replace.stop, list(replace.shadowed_seqs)) == (0, 2, [4, 2])


def test_events_say_what_shadowed_them(filled: Calls) -> None:
    filled.append(replacing(system("S"), 1, 2), replacing(system("T"), 1, 1))
    states = [(each.state, each.state_seq) for each in filled.events()]
    assert states == [(LIVE, 0), (SHADOWED, 4), (SHADOWED, 4), (LIVE, 0), (SHADOWED, 5), (LIVE, 0)]
    assert not filled.events()[0].HasField("state_seq")


def test_each_event_of_a_batch_is_judged_after_those_before_it(log: Calls) -> None:
    answer = log.append(
        user("a"), user("b"), replacing(system("S"), 0, 1), replacing_entries(system("T"), 2, 2)
    )
    assert [(each.index, list(each.shadowed_seqs)) for each in answer.replaces] == [
        (2, [0, 1]),
        (3, [2]),
    ]
    assert log.surface() == [3]


def test_a_refused_replace_takes_its_batch_with_it(filled: Calls) -> None:
    with refused("EMPTY_RANGE"):
        filled.append(replacing(system("S"), 0, 3), user("e"), replacing(system("T"), 1, 3))
    assert filled.surface() == [0, 1, 2, 3]
    assert filled.get().next_seq == 4


@pytest.mark.parametrize(
    ("start", "stop"), [(2, 1), (-1, 2), (4, 4), (0, 4), (0, 99), (9, 12), (2**62, 2**62)]
)
def test_a_malformed_range_is_refused(filled: Calls, start: int, stop: int) -> None:
    with refused("INVALID_FIELD") as told:
        filled.append(replacing(system("S"), start, stop))
    assert all(field.startswith("events[0].replace") for field in told.fields or {"": ""})
    assert filled.surface() == [0, 1, 2, 3]


def test_own_seq_counts_the_batch(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        log.append(user("a"), user("b"), replacing(system("S"), 0, 2))
    assert all(field.startswith("events[2].replace") for field in told.fields or {"": ""})
    log.append(user("a"), user("b"), replacing(system("S"), 0, 1))
    assert log.surface() == [2]


def test_a_range_that_shadows_nothing_needs_allow_empty(log: Calls) -> None:
    log.append(user("a"), turn_start(), user("b"))
    with refused("EMPTY_RANGE", start=1, stop=1):
        log.append(replacing(system("S"), 1, 1))
    answer = log.append(replacing(system("S"), 1, 1, allow_empty=True))
    assert list(answer.replaces[0].shadowed_seqs) == []
    assert log.surface() == [0, 3, 2]


def test_an_entry_that_is_not_live_is_refused(filled: Calls) -> None:
    filled.append(replacing(system("S"), 1, 2), turn_start())
    for seq in (1, 2, 5, 99):
        with refused("ENTRY_NOT_LIVE", seq=seq):
            filled.append(replacing_entries(system("T"), seq, 3))
    with refused("ENTRY_NOT_LIVE", seq=2):
        filled.append(replacing_entries(system("T"), 0, 2))


def test_entries_in_the_wrong_order_are_refused(filled: Calls) -> None:
    filled.append(replacing(system("S"), 1, 2))
    with refused("INVALID_FIELD"):
        filled.append(replacing_entries(system("T"), 3, 4))
    filled.append(replacing_entries(system("T"), 4, 3))
    assert filled.surface() == [0, 5]


def test_validate_only_tells_what_would_be_shadowed(filled: Calls) -> None:
    answer = filled.append(replacing_entries(system("S"), 1, 2), validate_only=True)
    assert list(answer.replaces[0].shadowed_seqs) == [1, 2]
    assert filled.surface() == [0, 1, 2, 3]


def test_the_answer_lists_the_ids_it_unpaired(log: Calls) -> None:
    log.append(assistant("", "x", "y"), result("1", "x"), result("2", "y"), user("u"))
    orphaning = log.append(replacing(system("S"), 0, 1), validate_only=True).replaces[0]
    assert list(orphaning.orphaned_result_ids) == ["y"]
    assert list(orphaning.unanswered_call_ids) == []
    leaving = log.append(replacing(system("S"), 1, 1), validate_only=True).replaces[0]
    assert list(leaving.orphaned_result_ids) == []
    assert list(leaving.unanswered_call_ids) == ["x"]


def test_require_balanced_refuses_what_unpairs(log: Calls) -> None:
    log.append(assistant("", "x", "y"), result("1", "x"), result("2", "y"))
    with refused("UNBALANCED_RANGE") as told:
        log.append(replacing(system("S"), 0, 0), require_balanced=True)
    assert told.facts["orphaned_result_ids"].split("\n") == ["x", "y"]
    with refused("UNBALANCED_RANGE", unanswered_call_ids="y"):
        log.append(replacing(system("S"), 2, 2), require_balanced=True)
    log.append(replacing(system("S"), 0, 2), require_balanced=True)
    assert log.surface() == [3]


def test_require_balanced_allows_a_result_in_place_of_a_result(log: Calls) -> None:
    log.append(assistant("", "x"), result("a long one", "x"))
    log.append(replacing(result("short", "x"), 1, 1), require_balanced=True)
    assert log.texts() == ["", "short"]


def test_require_balanced_blames_no_range_for_what_was_unpaired_before(log: Calls) -> None:
    log.append(result("orphan", "zz"), assistant("", "open"), user("a"), user("b"))
    log.append(replacing(system("S"), 2, 3), require_balanced=True)
    assert log.surface() == [0, 1, 4]


def test_a_repeated_id_pairs_with_the_nearest_call(log: Calls) -> None:
    log.append(
        assistant("", "c"), result("1", "c"), user("u"), assistant("", "c"), result("2", "c")
    )
    log.append(replacing(system("S"), 0, 1), require_balanced=True)
    with refused("UNBALANCED_RANGE", orphaned_result_ids="c"):
        log.append(replacing(system("T"), 2, 3), require_balanced=True)


def test_superseding_a_replace_brings_nothing_back(filled: Calls) -> None:
    filled.append(user("e"), replacing(system("R1"), 1, 3), replacing(system("R2"), 0, 2))
    assert filled.surface() == [6, 4]


def test_a_replace_of_a_range_with_many_entries_keeps_the_rest_in_place(log: Calls) -> None:
    log.append(*(user(str(i)) for i in range(200)))
    answer = log.append(replacing(system("S"), 10, 189))
    assert list(answer.replaces[0].shadowed_seqs) == list(range(10, 190))
    assert log.surface() == [*range(10), 200, *range(190, 200)]
