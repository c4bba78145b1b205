"""Snapshots: what is dropped, what stays, and what can no longer be read."""

from __future__ import annotations

import pytest

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import (
    header,
    replacing,
    system,
    turn_end,
    turn_start,
    user,
    user_message,
)


@pytest.fixture
def compacted(log: Calls) -> Calls:
    """A session whose seqs 0 and 1 are shadowed by 3."""
    log.append(user("a"), user("b"), user("c"), replacing(system("S"), 0, 1))
    return log


def test_shadowed_bodies_are_dropped_and_the_fold_stays(compacted: Calls) -> None:
    before = compacted.fold()
    answer = compacted.snapshot()
    assert (answer.dropped_count, answer.whole_from_seq, answer.next_seq) == (2, 3, 4)
    assert compacted.fold() == before
    assert compacted.append(user("d")).first_seq == 4
    assert compacted.surface() == [3, 2, 4]


def test_tombstones_keep_seq_type_time_and_position(compacted: Calls) -> None:
    before = compacted.events()
    compacted.snapshot()
    after = compacted.events()
    assert [each.dropped for each in after] == [True, True, False, False]
    assert [each.HasField("body") for each in after] == [False, False, True, True]
    for old, new in zip(before, after, strict=True):
        assert (new.seq, new.type, new.time, new.position) == (
            *(old.seq, old.type, old.time, old.position),
        )
        assert (new.state, new.state_seq, new.chain) == (old.state, old.state_seq, old.chain)


def test_undone_bodies_are_dropped(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    log.rewind(0)
    answer = log.snapshot()
    assert (answer.dropped_count, answer.whole_from_seq) == (2, 3)
    assert log.texts() == ["a"]
    with refused("HISTORY_DROPPED", whole_from_seq=3):
        log.rewind(1)
    log.rewind(0)
    log.rewind(3)


def test_bookkeeping_stays(log: Calls) -> None:
    log.append(turn_start(), user("a"), header(model="m"), turn_end())
    log.append(replacing(system("S"), 1, 3))
    assert log.snapshot().dropped_count == 1
    assert [each.seq for each in log.events() if each.HasField("body")] == [0, 2, 3, 4]
    assert log.header_answer().header.model == "m"
    assert not log.get().HasField("open_turn_seq")


def test_a_snapshot_of_nothing_drops_nothing(log: Calls) -> None:
    log.append(user("a"))
    answer = log.snapshot()
    assert (answer.dropped_count, answer.whole_from_seq) == (0, 0)


def test_a_second_snapshot_drops_nothing_more(compacted: Calls) -> None:
    compacted.snapshot()
    again = compacted.snapshot()
    assert (again.dropped_count, again.whole_from_seq) == (0, 3)
    compacted.append(replacing(system("T"), 0, 2))
    more = compacted.snapshot()
    assert (more.dropped_count, more.whole_from_seq) == (2, 4)


@pytest.mark.parametrize("seq", [0, 1, 2])
def test_what_needs_dropped_history_says_from_where_it_is_whole(compacted: Calls, seq: int) -> None:
    compacted.snapshot()
    with refused("HISTORY_DROPPED", whole_from_seq=3):
        compacted.fold(seq)
    with refused("HISTORY_DROPPED", whole_from_seq=3):
        compacted.fork(seq)
    with refused("HISTORY_DROPPED", whole_from_seq=3):
        compacted.rewind(seq)
    with refused("HISTORY_DROPPED", whole_from_seq=3):
        compacted.check(user_message("a"), at_seq=seq)
    assert compacted.get().next_seq == 4


def test_what_needs_none_of_it_still_works(compacted: Calls) -> None:
    compacted.snapshot()
    assert compacted.texts(3) == ["S", "c"]
    assert compacted.fork(3).texts() == ["S", "c"]
    assert compacted.fold(-1) == []
    assert compacted.fork(-1).events() == []


def test_a_child_of_a_snapshot_knows_what_is_gone(compacted: Calls) -> None:
    compacted.snapshot()
    child = compacted.fork(3)
    assert child.get().whole_from_seq == 3
    with refused("HISTORY_DROPPED", whole_from_seq=3):
        child.fold(1)
    with refused("HISTORY_DROPPED"):
        child.rewind(2)
    assert child.verify().intact


def test_what_a_fork_reads_is_kept(compacted: Calls) -> None:
    child = compacted.fork(2)
    compacted.snapshot()
    assert child.texts() == ["a", "b", "c"]
    assert child.events()[0].body.message.text == "a"
    child.append(replacing(system("T"), 0, 0))
    child.snapshot()
    assert child.texts() == ["T", "b", "c"]
    with refused("HISTORY_DROPPED"):
        compacted.fold(1)


def test_a_childs_snapshot_leaves_its_parent_whole(log: Calls) -> None:
    log.append(user("a"), user("b"))
    child = log.fork(1)
    child.append(replacing(system("S"), 0, 1))
    child.snapshot()
    assert log.texts() == ["a", "b"]
    assert log.get().whole_from_seq == 0
    assert child.texts() == ["S"]


def test_the_session_tells_from_where_it_is_whole(compacted: Calls) -> None:
    assert compacted.get().whole_from_seq == 0
    compacted.snapshot()
    assert compacted.get().whole_from_seq == 3


def test_the_chain_holds_over_tombstones(compacted: Calls) -> None:
    chain = compacted.verify().chain
    compacted.snapshot()
    verified = compacted.verify()
    assert verified.intact
    assert verified.chain != chain


def test_a_retry_gives_the_first_answer(compacted: Calls) -> None:
    first = compacted.snapshot(request_id="r")
    compacted.append(user("d"))
    assert compacted.snapshot(request_id="r") == first


def test_a_snapshot_needs_no_writer_epoch(compacted: Calls) -> None:
    compacted.open_writer()
    assert compacted.snapshot().dropped_count == 2
