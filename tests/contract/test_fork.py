"""Forks: what a child holds, and that neither notices the other."""

from __future__ import annotations

import pytest

from tests.contract.calls import Calls, fresh_id
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


@pytest.fixture
def compacted(log: Calls) -> Calls:
    """A session compacted at seq 4."""
    log.append(*(user(text) for text in "abcd"), replacing(system("S"), 0, 2), user("e"))
    return log


def test_a_child_holds_the_log_up_to_the_cut(compacted: Calls) -> None:
    answer = compacted.fork_answer(4)
    child = compacted.other(answer.session.session_id)
    assert answer.next_seq == 5
    assert child.surface() == [4, 3]
    assert [each.seq for each in child.events()] == [0, 1, 2, 3, 4]
    assert answer.session.parent.session_id == compacted.session_id
    assert answer.session.parent.at_seq == 4


def test_a_fork_before_a_compaction_brings_the_originals_back(compacted: Calls) -> None:
    assert compacted.fork(3).texts() == ["a", "b", "c", "d"]
    assert compacted.fork(1).texts() == ["a", "b"]
    assert compacted.texts() == ["S", "d", "e"]


def test_without_a_cut_a_fork_takes_all(compacted: Calls) -> None:
    child = compacted.fork()
    assert child.fold() == compacted.fold()
    assert child.get().next_seq == 6


def test_a_fork_of_nothing_is_empty(compacted: Calls) -> None:
    child = compacted.fork(-1)
    assert child.events() == []
    assert child.append(user("first")).first_seq == 0
    assert child.get().parent.at_seq == -1


def test_a_child_has_its_ancestors_bytes(compacted: Calls) -> None:
    child = compacted.fork(5)
    ours, theirs = child.events(), compacted.events()
    assert [each.body for each in ours] == [each.body for each in theirs]
    assert [each.time for each in ours] == [each.time for each in theirs]
    assert [each.chain for each in ours] == [each.chain for each in theirs]


def test_parent_and_child_go_their_own_ways(compacted: Calls) -> None:
    child = compacted.fork(3)
    compacted.append(user("parent"))
    child.append(user("child"))
    child.append(replacing(system("C"), 0, 1))
    compacted.rewind(0)
    assert child.texts() == ["C", "c", "d", "child"]
    assert compacted.texts() == ["a"]
    assert child.surface() == [5, 2, 3, 4]


def test_forks_of_forks_read_through_every_ancestor(log: Calls) -> None:
    chain = [log]
    for depth in range(6):
        chain[-1].append(user(f"{depth}a"), user(f"{depth}b"))
        chain.append(chain[-1].fork(2 * depth))
        chain[-1].append(user(f"{depth}c"))
    last = chain[-1]
    assert last.texts() == [t for d in range(6) for t in (f"{d}a", f"{d}c")]
    assert [each.seq for each in last.events()] == list(range(12))
    ancestors = [(each.session_id, 2 * d) for d, each in enumerate(chain[:-1])]
    assert last.lineage() == ancestors[::-1]


def test_a_fork_inside_the_shared_part_of_a_fork(compacted: Calls) -> None:
    child = compacted.fork(4)
    grandchild = child.fork(1)
    assert grandchild.texts() == ["a", "b"]
    assert grandchild.get().parent.session_id == child.session_id
    assert [each for each, _ in grandchild.lineage()] == [child.session_id, compacted.session_id]
    grandchild.append(user("g"))
    assert grandchild.get().next_seq == 3


def test_a_child_outlives_its_parents_deletion(compacted: Calls) -> None:
    child = compacted.fork(3)
    grandchild = child.fork(2)
    compacted.delete()
    child.delete()
    assert grandchild.texts() == ["a", "b", "c"]
    assert [each for each, _ in grandchild.lineage()] == [child.session_id, compacted.session_id]
    assert grandchild.append(user("g")).first_seq == 3


def test_a_child_outlives_its_parents_snapshot(compacted: Calls) -> None:
    child = compacted.fork(3)
    compacted.snapshot()
    assert child.texts() == ["a", "b", "c", "d"]
    assert child.fork(1).texts() == ["a", "b"]
    assert child.verify().intact
    assert child.get().whole_from_seq == 0


def test_a_cut_may_lie_in_a_gap_or_in_an_undone_part(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    log.rewind(0)
    assert log.fork(2).texts() == ["a", "b", "c"]
    assert log.fork(1).texts() == ["a", "b"]
    assert log.fork(3).texts() == ["a"]
    log.restore(log.events(0)[0].__class__(seq=9, body=user("z").body))
    child = log.fork(6)
    assert (child.get().next_seq, child.texts()) == (7, ["a"])
    assert child.append(user("n")).first_seq == 7


def test_labels_and_metadata_are_given_not_inherited(log: Calls) -> None:
    log.update(set_labels={"p": "1"}, metadata_json="[1]")
    log.append(user("a"))
    assert not log.fork().get().labels
    assert not log.fork().get().metadata_json
    child = log.fork(0, labels={"c": "2"}, metadata_json="[2.0]").get()
    assert (dict(child.labels), child.metadata_json) == ({"c": "2"}, "[2.0]")


def test_a_child_starts_without_a_writer(log: Calls) -> None:
    log.append(user("a"))
    log.open_writer()
    child = log.fork()
    assert child.get().writer_epoch == 0
    child.append(user("b"))


def test_the_answer_names_what_is_open_at_the_cut(log: Calls) -> None:
    log.append(turn_start(), user("u"), assistant("", "x", "y"), result("1", "x"), turn_end())
    cut = log.fork_answer(3).cut
    assert (cut.open_turn_seq, list(cut.unanswered_call_ids)) == (0, ["y"])
    closed = log.fork_answer(4).cut
    assert (closed.HasField("open_turn_seq"), list(closed.unanswered_call_ids)) == (False, ["y"])
    assert list(log.fork_answer(1).cut.unanswered_call_ids) == []


def test_require_closed_turn_refuses_an_open_one(log: Calls) -> None:
    log.append(user("u"), turn_start(), user("v"), turn_end())
    with refused("OPEN_TURN", turn_seq=1):
        log.fork(2, require_closed_turn=True)
    assert log.fork(3, require_closed_turn=True).get().next_seq == 4


def test_the_header_at_the_cut_is_the_childs(log: Calls) -> None:
    log.append(header(model="m1"), user("u"), header(model="m2"))
    assert log.fork(1).header_answer().header.model == "m1"
    assert log.fork(2).header_answer().header.model == "m2"


def test_a_cut_past_the_head_is_refused(compacted: Calls) -> None:
    child = fresh_id()
    with refused("SEQ_BEYOND_HEAD", seq=6, next_seq=6):
        compacted.fork(6, child)
    with refused("INVALID_FIELD"):
        compacted.fork(-2, child)
    with refused("SESSION_NOT_FOUND"):
        compacted.other(child).get()


def test_an_existing_child_id_is_refused(compacted: Calls) -> None:
    taken = Calls.create(compacted.stub)
    with refused("SESSION_EXISTS", session_id=taken.session_id):
        compacted.fork(1, taken.session_id)
    with refused("SESSION_EXISTS", session_id=compacted.session_id):
        compacted.fork(1, compacted.session_id)
    assert taken.events() == []


def test_a_retry_gives_the_first_child(compacted: Calls) -> None:
    child, request_id = fresh_id(), fresh_id("r")
    first = compacted.fork_answer(1, child, request_id=request_id)
    assert compacted.fork_answer(1, child, request_id=request_id).session.session_id == child
    assert first.next_seq == 2
    with refused("REQUEST_ID_REUSED"):
        compacted.fork(2, child, request_id=request_id)


def test_a_made_child_id_follows_from_the_request_id(compacted: Calls) -> None:
    request_id = fresh_id("r")
    first = compacted.fork_answer(1, "", request_id=request_id).session.session_id
    compacted.append(user("later"))
    assert compacted.fork_answer(1, "", request_id=request_id).session.session_id == first
    assert compacted.fork_answer(1, "").session.session_id != first
    assert first


def test_the_childs_turn_state_is_its_own(log: Calls) -> None:
    log.append(turn_start(), user("u"))
    child = log.fork(1)
    log.append(turn_end())
    assert child.get().open_turn_seq == 0
    child.append(turn_end())
    assert not child.get().HasField("open_turn_seq")


def test_a_wide_family_of_forks_stays_apart(log: Calls) -> None:
    log.append(*(user(str(i)) for i in range(20)))
    children = [log.fork(i) for i in range(20)]
    for i, child in enumerate(children):
        child.append(user(f"own {i}"))
    for i, child in enumerate(children):
        assert child.texts() == [*map(str, range(i + 1)), f"own {i}"]
