"""Attempts share a timeout; a write keeps its request id over them."""

from __future__ import annotations

import pytest
from foldlog import RetryPolicy, errors, user
from foldlog.client.operations import appending, reading
from foldlog.client.retries import Attempts
from foldlog.client.steps import Failure
from foldlog.v1 import message_pb2
from foldlog.v1 import service_pb2 as pb

from tests.client.driving import END, LOST, Driven, session

USER_A = message_pb2.Message(role=message_pb2.ROLE_USER, text="a")
APPENDED = pb.AppendEventsResponse(first_seq=3, next_seq=4)
REFUSED = Failure(errors.SeqConflictError(expected_next_seq=1, next_seq=2))
OVERLOADED = Failure(errors.OverloadedError(cause="busy"), is_transient=True, delay_s=1.5)


class Clock:
    """A clock that is set by hand."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_lost_connection_is_tried_again_under_the_same_request_id() -> None:
    driven = Driven(appending.append(session(), user("hi")), [LOST, LOST, APPENDED])
    assert driven.result.first_seq == 3
    assert len({asked.request_id for asked in driven.asked}) == 1
    assert driven.asked[0].request_id
    assert driven.asked[0] == driven.asked[1] == driven.asked[2]


def test_two_calls_have_two_request_ids() -> None:
    ids = [
        Driven(appending.append(session(), user("hi")), [APPENDED]).asked[0].request_id
        for _ in range(2)
    ]
    assert ids[0] != ids[1]


def test_a_request_id_that_is_given_is_used() -> None:
    call = appending.append(session(), user("hi"), request_id="mine")
    assert Driven(call, [APPENDED]).asked[0].request_id == "mine"


def test_a_refusal_is_not_tried_again() -> None:
    with pytest.raises(errors.SeqConflictError):
        Driven(appending.append(session(), user("hi")), [REFUSED])


def test_without_a_policy_nothing_is_tried_again() -> None:
    with pytest.raises(errors.ConnectionLostError):
        Driven(appending.append(session(retry=None), user("hi")), [LOST])


def test_the_delay_that_the_service_asks_for_is_kept() -> None:
    driven = Driven(appending.append(session(), user("hi")), [OVERLOADED, APPENDED])
    assert driven.slept == [1.5]


def test_delays_double_up_to_the_longest_and_are_cut_by_up_to_half() -> None:
    policy = RetryPolicy(first_delay_s=1, longest_delay_s=4)
    whole = Attempts(policy, None, jitter=lambda: 0.0)
    cut = Attempts(policy, None, jitter=lambda: 1.0)
    assert [whole.failed(LOST) for _ in range(4)] == [1, 2, 4, 4]
    assert [cut.failed(LOST) for _ in range(4)] == [0.5, 1, 2, 2]


def test_attempts_end_where_the_next_would_be_too_late() -> None:
    clock = Clock()
    attempts = Attempts(RetryPolicy(1, 1), 3.0, clock=clock, jitter=lambda: 0.0)
    attempts.failed(LOST)
    clock.now_s += 2.0
    assert attempts.remaining_s == 1.0
    with pytest.raises(errors.ConnectionLostError) as lost:
        attempts.failed(LOST)
    assert lost.value.__notes__[-1] == "gave up after 2 attempts"


def test_a_success_begins_a_new_outage() -> None:
    clock = Clock()
    attempts = Attempts(RetryPolicy(1, 4), 3.0, clock=clock, jitter=lambda: 0.0)
    assert attempts.failed(LOST) == 1
    clock.now_s += 10
    attempts.succeeded()
    assert attempts.failed(LOST) == 1


def test_a_calls_own_timeout_comes_before_the_clients() -> None:
    call = appending.append(session(timeout_s=30), user("hi"), timeout_s=5)
    (timeout_s,) = Driven(call, [APPENDED]).timeouts_s
    assert timeout_s is not None
    assert 4 < timeout_s <= 5


def test_messages_are_read_from_the_beginning_again_when_the_stream_breaks() -> None:
    piece = pb.GetMessagesResponse(
        messages=[pb.FoldedMessage(seq=0, message=USER_A)], next_seq=1, count=1
    )
    driven = Driven(reading.messages(session()), [piece, LOST, piece, END])
    assert [each.seq for each in driven.result] == [0]
    assert all(stream.cancelled for stream in driven.streams)


def test_try_append_counts_and_returns_none() -> None:
    mine = session(retry=None)
    assert Driven(appending.try_append(mine, user("hi")), [LOST]).result is None
    assert Driven(appending.try_append(mine, user("\ud800")), []).result is None
    assert Driven(appending.try_append(mine, 5), []).result is None  # type: ignore[arg-type]
    assert Driven(appending.try_append(mine, user("hi")), [APPENDED]).result.first_seq == 3
    assert mine.failed_appends == mine.client.failed_appends == 3
