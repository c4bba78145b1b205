"""Open turns and steps: structure decides."""

from __future__ import annotations

import pytest
from foldlog.core.event import EventType
from foldlog.core.turns import MAX_OPEN_TURNS, TurnState

TYPES = {
    "(": EventType.TURN_START,
    ")": EventType.TURN_END,
    "[": EventType.STEP_START,
    "]": EventType.STEP_END,
    ".": EventType.USER_MESSAGE,
}
CASES = {
    "nothing": ("", (), None),
    "an open turn": ("(.", (0,), None),
    "a closed turn": ("(.)", (), None),
    "an open step": (".([.", (1,), 2),
    "a closed step": ("([])", (), None),
    "a second step": ("([][", (0,), 3),
    "a turn's end closes its step": ("([)", (), None),
    "an end without a start": (")(", (1,), None),
    "a step's end without a start": ("(]", (0,), None),
    "nested turns": ("((", (0, 1), None),
    "an end closes the innermost turn": ("(()", (0,), None),
    "the step around an inner turn stays open": ("([()", (0,), 1),
    "an inner turn's end closes the inner step alone": ("(([)", (0,), None),
    "a step outside of turns": ("[", (), 0),
    "an end without a turn leaves such a step open": ("[)", (), 0),
    "a turn that never ended, then another": ("([.([", (0, 3), 4),
}


def after(events: str) -> TurnState:
    state = TurnState()
    for seq, event in enumerate(events):
        state = state.after(TYPES[event], seq)
    return state


@pytest.mark.parametrize(("events", "turns", "step"), CASES.values(), ids=CASES)
def test_what_is_open(events: str, turns: tuple[int, ...], step: int | None) -> None:
    state = after(events)
    assert (state.open_turns, state.open_step_seq) == (turns, step)
    assert state.open_turn_seq == (turns[-1] if turns else None)


def test_a_type_of_a_newer_release_changes_nothing() -> None:
    state = after("([")
    assert state.after(99, 2) is state


def test_the_state_is_bounded_and_forgets_the_outermost() -> None:
    state = after("(" * (MAX_OPEN_TURNS + 3))
    assert state.open_turns == tuple(range(3, MAX_OPEN_TURNS + 3))
    assert after("(" * (MAX_OPEN_TURNS + 3) + ")").open_turn_seq == MAX_OPEN_TURNS + 1
