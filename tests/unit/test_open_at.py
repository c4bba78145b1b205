"""What is open at a seq of a fold at hand, against a fold that ends there."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from foldlog.application.decisions import Cut, cut_of
from foldlog.application.fold import Fold, Live, Passed, RowRef
from foldlog.core import pairing
from foldlog.core.event import EventType, PositionRange
from foldlog.core.message import Role

ID = UUID(int=7)
TURNS = (EventType.TURN_START, EventType.TURN_END, EventType.STEP_START, EventType.STEP_END)
IDS = "abcd"


@pytest.fixture(autouse=True)
def every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember places after each item or two, so that short logs have some."""
    monkeypatch.setattr(pairing, "SETTLED", 2)
    monkeypatch.setattr(pairing, "KEEP_UP", 3)


def said(rng: random.Random, seq: int) -> Passed:
    """Return an event that may stand at a seq."""
    ref = RowRef(ID, seq + 1)
    if rng.random() < 0.3:
        return Passed(seq, rng.choice(TURNS), ref)
    replace = None
    if seq > 0 and rng.random() < 0.08:
        start = rng.randrange(seq)
        replace = PositionRange(start, rng.randrange(start, seq))
    position = seq if replace is None else replace.start
    kind = rng.choice((Role.USER, Role.ASSISTANT, Role.TOOL))
    calls = tuple(rng.sample(IDS, rng.randrange(3))) if kind is Role.ASSISTANT else ()
    answers = rng.choice(IDS) if kind is Role.TOOL else None
    live = Live(position, seq, ref, kind, bytes(32), calls, answers)
    return Passed(seq, EventType.ASSISTANT_MESSAGE, ref, live, replace)


def ending_at(log: list[Passed], count: int) -> Fold:
    """Return the fold of a log's first events. A rewind goes back to the fold that ended there."""
    fold = Fold()
    for event in log[:count]:
        if event.rewind_to is None:
            fold.take(event)
        else:
            fold.go_back(event, ending_at(log, event.rewind_to + 1))
    return fold


def defined(fold: Fold) -> Cut:
    return cut_of(fold.turns, tuple(fold.surface))


def test_what_a_fold_tells_of_an_earlier_seq_is_what_a_fold_that_ended_there_tells() -> None:
    rng = random.Random(11)
    told = silent = 0
    for _ in range(250):
        log: list[Passed] = []
        fold = Fold()
        for seq in range(rng.randrange(1, 45)):
            event = said(rng, seq)
            if seq > 0 and rng.random() < 0.03:
                to = rng.randrange(-1, seq)
                event = Passed(seq, EventType.REWIND, RowRef(ID, seq + 1), rewind_to=to)
            log.append(event)
            if event.rewind_to is None:
                fold.take(event)
            else:
                fold.go_back(event, ending_at(log, event.rewind_to + 1))
            if rng.random() < 0.2:
                fold.advance(rng.randrange(30))
            at = rng.randrange(-1, seq + 1)
            found = fold.open_at(at)
            if found is None:
                silent += 1
                continue
            told += 1
            assert cut_of(*found) == defined(ending_at(log, at + 1))
    assert told > 1_000
    assert silent > 200


def test_an_answered_past_is_not_looked_at_again() -> None:
    fold = Fold()
    for seq in range(0, 3_000, 2):
        ref = RowRef(ID, seq + 1)
        call = Live(seq, seq, ref, Role.ASSISTANT, bytes(32), (f"call {seq}",))
        fold.take(Passed(seq, EventType.ASSISTANT_MESSAGE, ref, call))
        ref = RowRef(ID, seq + 2)
        answer = Live(seq + 1, seq + 1, ref, Role.TOOL, bytes(32), (), f"call {seq}")
        fold.take(Passed(seq + 1, EventType.TOOL_RESULT, ref, answer))
    turns, entries = fold.open_at(2_000) or pytest.fail("it is told")
    assert cut_of(turns, entries).unanswered_call_ids == ("call 2000",)
    assert len(entries) <= 4


def test_before_a_checkpoint_nothing_is_told_of_turns() -> None:
    fold = Fold()
    fold.begin_at(10, fold.turns)
    assert fold.open_at(8) is None
    assert fold.open_at(9) is not None
