"""Rewinds: what counts afterwards, and what stays for audit."""

from __future__ import annotations

import pytest
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    header,
    replacing,
    result,
    system,
    turn_end,
    turn_start,
    user,
)

LIVE, UNDONE = event_pb2.EVENT_STATE_LIVE, event_pb2.EVENT_STATE_UNDONE


@pytest.fixture
def filled(log: Calls) -> Calls:
    """A session of four user messages."""
    log.append(*(user(text) for text in "abcd"))
    return log


def test_a_rewind_undoes_what_came_after(filled: Calls) -> None:
    answer = filled.rewind(1)
    assert (answer.seq, answer.next_seq) == (4, 5)
    assert filled.texts() == ["a", "b"]
    assert filled.append(user("e")).first_seq == 5
    assert filled.surface() == [0, 1, 5]


def test_the_undone_part_stays_for_audit(filled: Calls) -> None:
    filled.rewind(1)
    events = filled.events()
    assert [each.seq for each in events] == [0, 1, 2, 3, 4]
    assert [each.body.message.text for each in events[:4]] == ["a", "b", "c", "d"]
    assert [each.state for each in events[:4]] == [LIVE, LIVE, UNDONE, UNDONE]
    assert [each.state_seq for each in events[2:4]] == [4, 4]
    assert events[4].type == event_pb2.EVENT_TYPE_REWIND
    assert events[4].body.rewind.to_seq == 1


def test_a_rewind_to_nothing_empties_the_fold(filled: Calls) -> None:
    filled.rewind(-1)
    assert filled.fold() == []
    filled.append(user("new"))
    assert filled.surface() == [5]


def test_a_rewind_undoes_a_compaction(filled: Calls) -> None:
    filled.append(replacing(system("S"), 0, 2))
    filled.rewind(3)
    assert filled.texts() == ["a", "b", "c", "d"]
    assert {each.state for each in filled.events()[:4]} == {LIVE}


def test_a_rewind_into_the_undone_part_brings_it_back(filled: Calls) -> None:
    filled.rewind(0)
    filled.append(user("e"))
    filled.rewind(2)
    assert filled.texts() == ["a", "b", "c"]
    states = [each.state for each in filled.events()]
    assert states[:4] == [LIVE, LIVE, LIVE, UNDONE]
    assert states[5] == UNDONE
    filled.rewind(5)
    assert filled.texts() == ["a", "e"]


def test_a_rewind_to_a_rewind_is_what_it_left(filled: Calls) -> None:
    filled.rewind(0)
    filled.append(user("e"))
    filled.rewind(4)
    assert filled.texts() == ["a"]


def test_the_undone_part_does_not_come_back_by_itself(filled: Calls) -> None:
    filled.append(replacing(system("S"), 0, 3))
    filled.rewind(1)
    filled.append(replacing(system("T"), 0, 0))
    assert filled.texts() == ["T", "b"]
    with refused("ENTRY_NOT_LIVE", seq=2):
        filled.append(replacing(system("U"), 0, 0), *_entries(2))


def _entries(seq: int) -> list[event_pb2.NewEvent]:
    new = system("V")
    new.replace.entries.CopyFrom(event_pb2.EntryRange(first_seq=seq, last_seq=seq))
    return [new]


def test_a_rewind_to_a_gap_is_to_the_last_event_before_it(filled: Calls) -> None:
    filled.restore(event_pb2.Event(seq=10, body=user("z").body))
    filled.rewind(7)
    assert filled.texts() == ["a", "b", "c", "d"]


def test_a_read_at_a_seq_sees_what_counted_then(filled: Calls) -> None:
    filled.rewind(1)
    filled.append(user("e"))
    assert filled.texts(3) == ["a", "b", "c", "d"]
    assert filled.texts(4) == ["a", "b"]
    assert filled.texts(5) == ["a", "b", "e"]


def test_the_answer_names_what_is_open(log: Calls) -> None:
    log.append(turn_start(), user("u"), assistant("", "x"), result("r", "x"), turn_end())
    cut = log.rewind(2).cut
    assert (cut.open_turn_seq, list(cut.unanswered_call_ids)) == (0, ["x"])
    assert log.get().open_turn_seq == 0


def test_require_closed_turn_refuses_an_open_one(log: Calls) -> None:
    log.append(turn_start(), user("u"), turn_end())
    with refused("OPEN_TURN", turn_seq=0):
        log.rewind(1, require_closed_turn=True)
    assert log.get().next_seq == 3
    log.rewind(2, require_closed_turn=True)


def test_the_header_is_rewound(log: Calls) -> None:
    log.append(header(model="m1"), user("u"), header(model="m2"))
    log.rewind(1)
    assert log.header_answer().header.model == "m1"
    log.rewind(-1)
    with refused("HEADER_MISSING", session_id=log.session_id):
        log.header_answer()


def test_a_seq_past_the_head_is_refused(filled: Calls) -> None:
    with refused("SEQ_BEYOND_HEAD", seq=4, next_seq=4):
        filled.rewind(4)
    with refused("INVALID_FIELD") as told:
        filled.rewind(-2)
    assert list(told.fields or {}) == ["to_seq"]
    assert filled.get().next_seq == 4


def test_a_lost_race_is_refused(filled: Calls) -> None:
    with refused("SEQ_CONFLICT", expected_next_seq=3, next_seq=4):
        filled.rewind(0, expected_next_seq=3)
    assert filled.rewind(0, expected_next_seq=4).seq == 4


def test_a_retry_gives_the_first_answer(filled: Calls) -> None:
    first = filled.rewind(1, request_id="r")
    filled.append(user("e"))
    assert filled.rewind(1, request_id="r") == first
    assert filled.texts() == ["a", "b", "e"]
    with refused("REQUEST_ID_REUSED"):
        filled.rewind(2, request_id="r")


def test_facts_are_never_rewound(filled: Calls) -> None:
    filled.update(set_labels={"a": "1"})
    filled.rewind(-1)
    assert dict(filled.get().labels) == {"a": "1"}


def test_a_rewind_in_a_fork_goes_below_its_cut(filled: Calls) -> None:
    child = filled.fork(3)
    child.append(user("e"))
    child.rewind(1)
    assert child.texts() == ["a", "b"]
    assert filled.texts() == ["a", "b", "c", "d"]
    assert child.fork().texts() == ["a", "b"]
