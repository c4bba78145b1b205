"""What a stream of appends sends, keeps, and sends again."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from foldlog import Appended, errors
from foldlog.client.outbox import Outbox
from foldlog.client.state import SessionState
from foldlog.core.errors import FoldlogError
from foldlog.server.errors import status_of
from foldlog.v1 import service_pb2 as pb

from tests.client.driving import State

CLIENT = State("nowhere")
A, B = CLIENT.session("a"), CLIENT.session("b")


class Sending:
    """An outbox and the tickets of what was put in, by number."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.tickets: list[Future[Appended]] = []

    def put(self, *sessions: SessionState) -> list[Future[Appended]]:
        """Put in a batch per session."""
        for session in sessions:
            self.tickets.append(Future())
            request = pb.AppendEventsRequest(session_id=session.session_id)
            self.outbox.batch(session, request, self.tickets[-1])
        return self.tickets[-len(sessions) :]

    def resume(self, session: SessionState) -> Future[None]:
        """Put in a resume."""
        ticket: Future[None] = Future()
        self.outbox.resume(session, ticket)
        return ticket

    def again(self) -> list[int]:
        """Return the numbers that a new connection is sent."""
        return [request.number for request in self.outbox.to_send_again()]


def good(number: int) -> pb.AppendStreamResponse:
    """Return an answer that the batch is durable."""
    answer = pb.AppendEventsResponse(first_seq=number, next_seq=number + 1)
    return pb.AppendStreamResponse(number=number, appended=answer)


def bad(number: int, error: FoldlogError) -> pb.AppendStreamResponse:
    """Return an answer that the batch is refused."""
    status = status_of(error)
    refused = pb.ElementError(code=status.code, message=status.message, details=status.details)
    return pb.AppendStreamResponse(number=number, error=refused)


CONFLICT = errors.SeqConflictError(expected_next_seq=1, next_seq=2)


def test_answers_settle_their_tickets_in_any_order() -> None:
    sending = Sending()
    first, second = sending.put(A, B)
    assert sending.outbox.answered(good(2))
    assert second.result(0).first_seq == 2
    assert not first.done()
    assert len(sending.outbox) == 1


def test_what_is_unanswered_is_sent_again_in_order() -> None:
    sending = Sending()
    sending.put(A, B, A)
    sending.outbox.answered(good(2))
    assert sending.again() == [1, 3]


def test_a_refusal_refuses_what_follows_of_its_session_only() -> None:
    sending = Sending()
    (first,) = sending.put(A)
    sending.outbox.answered(bad(1, CONFLICT))
    with pytest.raises(errors.SeqConflictError):
        first.result(0)
    later, other = sending.put(A, B)
    with pytest.raises(errors.PreviousBatchFailedError) as refused:
        later.result(0)
    assert (refused.value.session_id, refused.value.number) == ("a", 1)
    assert not other.done()


def test_what_was_sent_after_a_refusal_is_not_sent_again() -> None:
    sending = Sending()
    _, second, _ = sending.put(A, A, B)
    sending.outbox.answered(bad(1, CONFLICT))
    assert sending.again() == [3]
    with pytest.raises(errors.PreviousBatchFailedError):
        second.result(0)


def test_what_was_sent_after_a_resume_is_sent_again() -> None:
    sending = Sending()
    _, second = sending.put(A, A)
    sending.outbox.answered(bad(1, CONFLICT))
    resumed = sending.resume(A)
    sending.put(A)
    assert sending.again() == [3, 4]
    assert second.done()
    assert not resumed.done()


def test_late_refusals_from_before_a_resume_do_not_refuse_again() -> None:
    sending = Sending()
    sending.put(A, A)
    sending.outbox.answered(bad(1, CONFLICT))
    sending.resume(A)
    sending.outbox.answered(bad(2, errors.PreviousBatchFailedError(session_id="a", number=1)))
    (fourth,) = sending.put(A)
    assert not fourth.done()


def test_a_resume_is_answered_with_nothing() -> None:
    sending = Sending()
    resumed = sending.resume(A)
    sending.outbox.answered(pb.AppendStreamResponse(number=1, appended=pb.AppendEventsResponse()))
    assert resumed.result(0) is None


@pytest.mark.parametrize(
    "error",
    [errors.OverloadedError(cause="busy"), errors.ShuttingDownError()],
    ids=["overloaded", "shutting-down"],
)
def test_a_refusal_that_passes_opens_the_stream_anew(error: FoldlogError) -> None:
    sending = Sending()
    first, _ = sending.put(A, A)
    assert not sending.outbox.answered(bad(1, error))
    assert not first.done()
    assert sending.again() == [1, 2]


def test_an_answer_to_nothing_is_passed_over() -> None:
    assert Sending().outbox.answered(good(7))


def test_room_is_by_number_and_by_size() -> None:
    sending = Sending()
    sending.put(A, A)
    assert sending.outbox.has_room(3)
    assert not sending.outbox.has_room(2)
    big = pb.AppendEventsRequest(request_id="x" * (64 * 1024 * 1024))
    sending.outbox.batch(A, big, Future())
    assert not sending.outbox.has_room(1_000)
    sending.outbox.fail_all(errors.ClientClosedError())
    assert sending.outbox.has_room(1)


def test_an_end_fails_everyone_who_waits() -> None:
    sending = Sending()
    first, second = sending.put(A, B)
    second.cancel()
    sending.outbox.fail_all(errors.ClientClosedError())
    with pytest.raises(errors.ClientClosedError):
        first.result(0)
    assert len(sending.outbox) == 0
