"""Reading events and folds: paging, filters, seqs, lineage and differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from foldlog.v1 import event_pb2, service_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import batches, replacing, system, turn_end, turn_start, user

MIB = 1024 * 1024


@pytest.fixture
def filled(log: Calls) -> Calls:
    """A session of ten events, every third one bookkeeping."""
    log.append(*(turn_start() if i % 3 == 2 else user(str(i)) for i in range(10)))
    return log


@pytest.mark.parametrize("page_size", [1, 3, 4, 10, 11, 5_000])
def test_pages_hold_each_event_once_in_order(filled: Calls, page_size: int) -> None:
    pages = list(filled.pages(page_size=page_size))
    assert [each.seq for page in pages for each in page.events] == list(range(10))
    assert all(len(page.events) <= page_size for page in pages)
    assert {page.next_seq for page in pages} == {10}


def test_from_seq_is_inclusive_and_past_the_head_empty(filled: Calls) -> None:
    assert [each.seq for each in filled.events(8)] == [8, 9]
    for past in (10, 11, 2**40):
        page = filled.page(from_seq=past)
        assert (list(page.events), page.next_page_token, page.next_seq) == ([], "", 10)


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("from_seq", {"from_seq": -1}),
        ("page_size", {"page_size": -1}),
        ("page_token", {"page_token": "no such token"}),
    ],
)
def test_a_bad_page_is_refused(filled: Calls, field: str, fields: dict[str, Any]) -> None:
    with refused("INVALID_FIELD") as told:
        filled.page(**fields)
    assert list(told.fields or {}) == [field]


def test_a_filter_by_type_pages_too(filled: Calls) -> None:
    types = [event_pb2.EVENT_TYPE_TURN_START]
    pages = list(filled.pages(page_size=2, types=types))
    assert [each.seq for page in pages for each in page.events] == [2, 5, 8]
    assert filled.events(types=[event_pb2.EVENT_TYPE_CUSTOM]) == []


def test_a_page_is_the_same_while_the_log_grows(filled: Calls) -> None:
    page = filled.page(page_size=4)
    filled.append(user("later"))
    rest = filled.page(page_size=100, page_token=page.next_page_token)
    assert [each.seq for each in rest.events] == list(range(4, 11))
    assert rest.next_seq == 11


def test_pages_are_bounded_by_bytes(log: Calls) -> None:
    for batch in batches([user("x" * 500_000) for _ in range(12)]):
        log.append(*batch)
    pages = list(log.pages(page_size=1_000))
    assert [each.seq for page in pages for each in page.events] == list(range(12))
    assert all(page.ByteSize() < 4 * MIB for page in pages)
    assert len(pages) >= 2


def test_an_event_larger_than_a_page_goes_alone(log: Calls) -> None:
    log.append(user("a"))
    log.append(user("x" * (3 * MIB + 300_000)))
    log.append(user("b"))
    pages = list(log.pages())
    assert [each.seq for page in pages for each in page.events] == [0, 1, 2]
    assert [each.seq for each in log.fold()] == [0, 1, 2]


def test_the_fold_of_a_large_session_comes_in_pieces_for_a_default_client(log: Calls) -> None:
    for batch in batches([user(f"{i}" + "é" * 100_000) for i in range(60)]):
        log.append(*batch)
    pieces = log.fold_pieces()
    assert len(pieces) > 3
    assert all(piece.ByteSize() < 4 * MIB for piece in pieces)
    assert [each.seq for piece in pieces for each in piece.messages] == list(range(60))
    assert {(piece.count, piece.next_seq) for piece in pieces} == {(60, 60)}
    assert [piece.HasField("digest") for piece in pieces][-1]
    assert not any(piece.HasField("digest") for piece in pieces[:-1])


def test_an_empty_fold_is_one_piece(log: Calls) -> None:
    (piece,) = log.fold_pieces()
    assert (list(piece.messages), piece.count, piece.next_seq) == ([], 0, 0)
    assert (piece.digest.count, piece.digest.digest) == (0, bytes(32))


def test_skip_leaves_out_the_first_messages(filled: Calls) -> None:
    pieces = filled.fold_pieces(skip=5)
    assert [each.seq for each in pieces[0].messages] == [7, 9]
    assert pieces[0].count == 7
    whole = filled.fold_pieces()[-1]
    assert pieces[-1].digest == whole.digest
    assert filled.fold(skip=7) == []
    assert filled.fold(skip=99) == []
    with refused("INVALID_FIELD"):
        filled.fold(skip=-1)


def test_the_fold_at_every_seq_is_what_it_was(log: Calls) -> None:
    states: list[list[int]] = [[]]
    steps: list[Callable[[], object]] = [
        *(partial(log.append, user(str(i))) for i in range(4)),
        lambda: log.append(replacing(system("S"), 1, 2)),
        lambda: log.append(turn_start()),
        lambda: log.append(user("x")),
        lambda: log.rewind(2),
        lambda: log.append(user("y")),
        lambda: log.append(replacing(system("T"), 0, 8)),
        lambda: log.append(turn_end()),
        lambda: log.rewind(6),
    ]
    for step in steps:
        step()
        states.append(log.surface())
    assert [log.surface(seq) for seq in range(-1, len(steps))] == states
    child = log.fork()
    assert [child.surface(seq) for seq in range(-1, len(steps))] == states


def test_a_read_past_the_head_is_refused(filled: Calls) -> None:
    with refused("SEQ_BEYOND_HEAD", seq=10, next_seq=10):
        filled.fold(10)
    with refused("INVALID_FIELD") as told:
        filled.fold(-2)
    assert list(told.fields or {}) == ["at_seq"]


def test_the_answer_says_for_which_next_seq_it_holds(filled: Calls) -> None:
    assert filled.fold_pieces()[0].next_seq == 10
    assert filled.fold_pieces(4)[0].next_seq == 5
    assert filled.fold_pieces(-1)[0].next_seq == 0


def test_min_next_seq_is_at_least_that_far(filled: Calls) -> None:
    next_seq = filled.append(user("x")).next_seq
    assert filled.fold_pieces(min_next_seq=next_seq)[0].next_seq >= next_seq
    with refused("SEQ_BEYOND_HEAD"):
        filled.fold(min_next_seq=next_seq + 1)


def test_a_read_sees_every_write_acknowledged_before_it(log: Calls) -> None:
    for count in range(1, 60):
        log.append(user(str(count)))
        assert len(log.fold()) == count
        assert log.page(from_seq=count - 1).events[0].seq == count - 1


def test_a_session_without_parent_has_no_lineage(log: Calls) -> None:
    assert log.lineage() == []


def pieces(left: Calls, right: Calls, **fields: Any) -> tuple[Any, list[str], list[str]]:
    """Return a comparison's summary and the texts of both tails."""
    request = service_pb2.DiffSessionsRequest(
        left_session_id=left.session_id, right_session_id=right.session_id, **fields
    )
    answers = list(left.stub.DiffSessions(request))
    kinds = [each.WhichOneof("kind") for each in answers]
    assert kinds == sorted(kinds, key=["summary", "left", "right"].index)
    tails = {
        side: [m.message.text for each in answers for m in getattr(each, side).messages]
        for side in ("left", "right")
    }
    return answers[0].summary, tails["left"], tails["right"]


def test_a_difference_is_the_common_prefix_and_both_tails(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    child = log.fork(1)
    child.append(user("x"), user("y"))
    summary, left, right = pieces(log, child)
    assert (summary.common_count, summary.left_count, summary.right_count) == (2, 1, 2)
    assert (left, right) == (["c"], ["x", "y"])
    assert summary.shared_seq == 1
    assert (summary.left_next_seq, summary.right_next_seq) == (3, 4)


def test_a_difference_of_strangers_shares_no_seq(log: Calls) -> None:
    other = Calls.create(log.stub)
    log.append(user("a"), system("s1"))
    other.append(user("a"), system("s2"))
    summary, left, right = pieces(log, other)
    assert not summary.HasField("shared_seq")
    assert (summary.common_count, left, right) == (1, ["s1"], ["s2"])


def test_a_difference_at_seqs(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    summary, left, right = pieces(log, log, left_at_seq=0, right_at_seq=2)
    assert (summary.common_count, left, right) == (1, [], ["b", "c"])
    same, _, _ = pieces(log, log)
    assert (same.common_count, same.left_count, same.right_count) == (3, 0, 0)


def test_a_difference_of_large_tails_comes_in_pieces(log: Calls) -> None:
    child = log.fork()
    for each in (log, child):
        for batch in batches([user("x" * 200_000 + each.session_id) for _ in range(20)]):
            each.append(*batch)
    _, left, right = pieces(log, child)
    assert (len(left), len(right)) == (20, 20)


def test_a_difference_between_cousins_shares_what_their_lineage_does(log: Calls) -> None:
    log.append(*(user(str(i)) for i in range(6)))
    left, right = log.fork(4), log.fork(2)
    deeper = left.fork(3)
    assert pieces(left, right)[0].shared_seq == 2
    assert pieces(deeper, left)[0].shared_seq == 3
    assert pieces(deeper, right)[0].shared_seq == 2
