"""The stream of appends."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from foldlog.v1 import event_pb2, service_pb2

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refusal_in
from tests.contract.said import replacing, system, user
from tests.served import Served


class Stream:
    """An open stream: elements go in as they are given, answers are taken by number."""

    def __init__(self, stub: Any) -> None:
        self._sending: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._answers: Iterator[Any] = stub.AppendStream(self._elements(), timeout=DEADLINE_S)

    def _elements(self) -> Iterator[Any]:
        while (element := self._sending.get()) is not None:
            yield element

    def send(self, number: int, log: Calls, *events: event_pb2.NewEvent, **fields: Any) -> None:
        """Send a batch."""
        batch = log.append_request(*events, **fields)
        self._sending.put(service_pb2.AppendStreamRequest(number=number, batch=batch))

    def resume(self, number: int, log: Calls) -> None:
        """Send word that a session's batches are to be accepted again."""
        resume = service_pb2.ResumeSession(session_id=log.session_id)
        self._sending.put(service_pb2.AppendStreamRequest(number=number, resume=resume))

    def send_raw(self, element: Any) -> None:
        """Send an element as it is."""
        self._sending.put(element)

    def answers(self, count: int) -> dict[int, Any]:
        """Return the next answers by number."""
        return {each.number: each for each in (next(self._answers) for _ in range(count))}

    def close(self) -> list[Any]:
        """End the stream and return what was left to answer."""
        self._sending.put(None)
        return list(self._answers)


@pytest.fixture
def stream(stub: Any) -> Iterator[Stream]:
    """An open stream."""
    opened = Stream(stub)
    yield opened
    opened.close()


def seq_of(answer: Any) -> int:
    """Return the seq of an element's first event."""
    assert answer.WhichOneof("result") == "appended", answer
    first_seq: int = answer.appended.first_seq
    return first_seq


def reason(answer: Any) -> str:
    """Return why an element was refused."""
    assert answer.WhichOneof("result") == "error", answer
    return refusal_in(answer.error).reason


def test_batches_of_a_session_apply_in_the_order_sent(stream: Stream, log: Calls) -> None:
    for number in range(100):
        stream.send(number, log, user(str(number)))
    answers = stream.answers(100)
    assert [seq_of(answers[n]) for n in range(100)] == list(range(100))
    assert log.texts() == [str(n) for n in range(100)]


def test_an_answer_is_that_of_an_append(stream: Stream, log: Calls) -> None:
    stream.send(7, log, user("a"), replacing(system("S"), 0, 0))
    answer = stream.answers(1)[7].appended
    assert (answer.first_seq, answer.next_seq) == (0, 2)
    assert list(answer.replaces[0].shadowed_seqs) == [0]


def test_after_a_refused_batch_later_ones_of_its_session_are_refused(
    stream: Stream, log: Calls
) -> None:
    other = Calls.create(log.stub)
    stream.send(1, log, user("a"))
    stream.send(2, log, user("b"), expected_next_seq=9)
    stream.send(3, log, user("c"))
    stream.send(4, other, user("x"))
    answers = stream.answers(4)
    assert answers[1].WhichOneof("result") == "appended"
    assert reason(answers[2]) == "SEQ_CONFLICT"
    assert reason(answers[3]) == "PREVIOUS_BATCH_FAILED"
    assert answers[4].WhichOneof("result") == "appended"
    assert log.texts() == ["a"]


def test_the_first_refusal_carries_what_a_call_would_say(stream: Stream, log: Calls) -> None:
    stream.send(5, log, event_pb2.NewEvent())
    stream.send(6, log, user("x"))
    answers = stream.answers(2)
    told = refusal_in(answers[5].error)
    assert (told.reason, told.code) == ("INVALID_FIELD", grpc.StatusCode.INVALID_ARGUMENT)
    assert told.fields
    follow = refusal_in(answers[6].error)
    assert follow.code == grpc.StatusCode.FAILED_PRECONDITION
    assert follow.facts == {"session_id": log.session_id, "number": "5"}


def test_a_resume_opens_the_session_again(stream: Stream, log: Calls) -> None:
    stream.send(1, log, user("a"), expected_next_seq=9)
    stream.send(2, log, user("b"))
    stream.resume(3, log)
    stream.send(4, log, user("c"))
    answers = stream.answers(4)
    assert reason(answers[2]) == "PREVIOUS_BATCH_FAILED"
    assert answers[3].WhichOneof("result") == "appended"
    assert answers[4].WhichOneof("result") == "appended"
    assert log.texts() == ["c"]


def test_a_resume_of_a_session_that_was_not_refused_is_no_error(stream: Stream, log: Calls) -> None:
    stream.resume(1, log)
    assert stream.answers(1)[1].WhichOneof("result") == "appended"


def test_streams_do_not_share_refusals(stream: Stream, log: Calls) -> None:
    stream.send(1, log, user("a"), expected_next_seq=9)
    stream.answers(1)
    other = Stream(log.stub)
    other.send(1, log, user("b"))
    assert seq_of(other.answers(1)[1]) == 0
    other.close()


def test_many_sessions_go_on_side_by_side(stream: Stream, log: Calls) -> None:
    logs = [Calls.create(log.stub) for _ in range(10)]
    for number in range(200):
        stream.send(number, logs[number % 10], user(str(number)))
    answers = stream.answers(200)
    assert all(seq_of(answers[n]) == n // 10 for n in range(200))
    assert logs[3].texts() == [str(n) for n in range(3, 200, 10)]


def test_what_is_in_flight_is_answered_before_the_stream_ends(log: Calls) -> None:
    stream = Stream(log.stub)
    for number in range(50):
        stream.send(number, log, user(str(number)))
    assert sorted(each.number for each in stream.close()) == list(range(50))
    assert log.get().next_seq == 50


def test_a_resent_batch_gives_its_first_answer(stream: Stream, log: Calls) -> None:
    stream.send(1, log, user("a"), request_id="r1")
    stream.send(2, log, user("b"), request_id="r2")
    first = stream.answers(2)
    again = Stream(log.stub)
    for number in (1, 2):
        again.send(number, log, user("ab"[number - 1]), request_id=f"r{number}")
    assert {n: a.appended for n, a in again.answers(2).items()} == {
        n: a.appended for n, a in first.items()
    }
    again.close()
    assert log.texts() == ["a", "b"]


def test_an_element_without_a_kind_is_refused_by_itself(stream: Stream, log: Calls) -> None:
    stream.send_raw(service_pb2.AppendStreamRequest(number=1))
    stream.send(2, log, user("a"))
    answers = stream.answers(2)
    assert reason(answers[1]) == "INVALID_FIELD"
    assert seq_of(answers[2]) == 0


def test_an_unknown_session_is_refused_by_itself(stream: Stream, log: Calls) -> None:
    stream.send(1, Calls(log.stub, "no such session"), user("a"))
    stream.send(2, log, user("a"))
    answers = stream.answers(2)
    assert reason(answers[1]) == "SESSION_NOT_FOUND"
    assert seq_of(answers[2]) == 0


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_after_a_crash_what_is_unacknowledged_is_resent_without_loss_or_double(
    log: Calls, served: Served
) -> None:
    stream = Stream(log.stub)
    for number in range(300):
        stream.send(number, log, user(str(number)), request_id=f"r{number}")
    acknowledged = stream.answers(40)
    served.restart()
    again = Stream(log.stub)
    missing = [n for n in range(300) if n not in acknowledged]
    for number in missing:
        again.send(number, log, user(str(number)), request_id=f"r{number}")
    again.answers(len(missing))
    again.close()
    assert log.texts() == [str(n) for n in range(300)]
