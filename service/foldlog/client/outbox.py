"""What a stream of appends has sent and not yet seen answered: no I/O, so both drivers share it.

Not safe for threads: a driver that has several guards it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from foldlog.client.decoding import appended_from_proto
from foldlog.client.encoding import event_to_proto, request
from foldlog.client.new_events import Appendable
from foldlog.client.state import MIB, SessionState, new_request_id
from foldlog.client.status import failure_of_element
from foldlog.client.values import Appended
from foldlog.core.errors import FoldlogError, PreviousBatchFailedError
from foldlog.v1 import service_pb2 as pb

IN_FLIGHT_BYTES: Final = 64 * MIB


class Ticket(Protocol):
    """A future of the driver's kind."""

    def done(self) -> bool: ...
    def set_result(self, result: Any, /) -> None: ...
    def set_exception(self, error: BaseException, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Element:
    """One element on its way: its request, whose it is, and who waits for the answer.

    `round` counts how often the session was resumed before it.
    """

    request: pb.AppendStreamRequest
    session: SessionState
    ticket: Ticket
    round: int

    def settle(self, result: Appended | None) -> None:
        """Give the answer to who waits, if anybody still does."""
        if not self.ticket.done():
            self.ticket.set_result(result)

    def refuse(self, error: FoldlogError) -> None:
        """Give the error to who waits, if anybody still does."""
        if not self.ticket.done():
            self.ticket.set_exception(error)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A session's batches are refused: since which number, and in which round."""

    number: int
    round: int


class Outbox:
    """The unanswered elements in the order sent, and which sessions are refused."""

    def __init__(self) -> None:
        self._pending: dict[int, Element] = {}
        self._size_bytes = 0
        self._sent = 0
        self.refused_count = 0
        self._rounds: dict[str, int] = {}
        self._refusals: dict[str, Refusal] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def has_room(self, max_in_flight: int) -> bool:
        """Return whether one more may be sent: by number, and by what resending would hold."""
        return len(self._pending) < max_in_flight and self._size_bytes < IN_FLIGHT_BYTES

    def batch(
        self, session: SessionState, request: pb.AppendEventsRequest, ticket: Ticket
    ) -> Element | None:
        """Take a batch in and return the element to send.

        None if the session is refused until it is resumed: the ticket then says so already.
        """
        number = self._sent + 1
        round_ = self._rounds.get(session.session_id, 0)
        element = Element(
            pb.AppendStreamRequest(batch=request, number=number), session, ticket, round_
        )
        if self._is_refused(element):
            self._refuse_after_refusal(element)
            return None
        return self._take_in(element)

    def resume(self, session: SessionState, ticket: Ticket) -> Element:
        """Accept the session's batches again and return the element to send."""
        round_ = self._rounds.get(session.session_id, 0) + 1
        self._rounds[session.session_id] = round_
        resume = pb.ResumeSession(session_id=session.session_id)
        request = pb.AppendStreamRequest(resume=resume, number=self._sent + 1)
        return self._take_in(Element(request, session, ticket, round_))

    def _take_in(self, element: Element) -> Element:
        self._sent = element.request.number
        self._pending[self._sent] = element
        self._size_bytes += element.request.ByteSize()
        return element

    def _drop(self, number: int) -> Element:
        element = self._pending.pop(number)
        self._size_bytes -= element.request.ByteSize()
        return element

    def answered(self, answer: pb.AppendStreamResponse) -> bool:
        """Settle the element that is answered.

        False if the answer is that the server cannot at present: the element stays pending, and
        the stream is to be opened anew, since the server's side of it is no longer in order.
        """
        element = self._pending.get(answer.number)
        if element is None:
            return True
        if answer.WhichOneof("result") != "error":
            self._drop(answer.number)
            self._settle(element, answer)
            return True
        failure = failure_of_element(answer.error)
        if failure.is_transient:
            return False
        self._drop(answer.number)
        self._note_refusal(element)
        element.refuse(failure.error)
        return True

    def _settle(self, element: Element, answer: pb.AppendStreamResponse) -> None:
        if element.request.WhichOneof("kind") == "resume":
            element.settle(None)
            return
        element.session.saw(answer.appended.next_seq)
        element.settle(appended_from_proto(answer.appended))

    def _note_refusal(self, element: Element) -> None:
        self.refused_count += 1
        session_id = element.session.session_id
        known = self._refusals.get(session_id)
        if known is None or known.round < element.round:
            self._refusals[session_id] = Refusal(element.request.number, element.round)

    def _is_refused(self, element: Element) -> bool:
        refusal = self._refusals.get(element.session.session_id)
        return refusal is not None and element.round <= refusal.round

    def _refuse_after_refusal(self, element: Element) -> None:
        self.refused_count += 1
        session_id = element.session.session_id
        number = self._refusals[session_id].number
        element.refuse(PreviousBatchFailedError(session_id=session_id, number=number))

    def to_send_again(self) -> Iterator[pb.AppendStreamRequest]:
        """Yield what a new connection is to be sent: the unanswered elements, in order.

        A new connection knows of no refusal, so what was sent after one is refused here.
        """
        for number, element in list(self._pending.items()):
            if self._is_refused(element):
                self._drop(number)
                self._refuse_after_refusal(element)
            else:
                yield element.request

    def fail_all(self, error: FoldlogError) -> None:
        """Give the error to everyone who waits."""
        for number in list(self._pending):
            self._drop(number).refuse(error)


def batch_request(
    session: SessionState,
    events: Sequence[Appendable],
    expected_next_seq: int | None,
    require_balanced: bool,
    request_id: str | None,
) -> pb.AppendEventsRequest:
    """Return the request of one batch. Raises InvalidFieldError."""
    return request(
        pb.AppendEventsRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        events=[event_to_proto(event, f"events[{i}]") for i, event in enumerate(events)],
        expected_next_seq=expected_next_seq,
        writer_epoch=session.writer_epoch,
        require_balanced=require_balanced,
    )
