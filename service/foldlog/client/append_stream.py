"""A stream of appends over the blocking client: many batches in flight, answered by futures."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from foldlog._grpc import grpc
from foldlog.client.errors import ClientClosedError, ConnectionLostError
from foldlog.client.methods import APPEND_STREAM
from foldlog.client.new_events import Appendable
from foldlog.client.outbox import Outbox, batch_request
from foldlog.client.retries import Attempts
from foldlog.client.state import SessionState
from foldlog.client.status import failure_of_call
from foldlog.client.steps import Failure
from foldlog.client.values import Appended
from foldlog.core.errors import FoldlogError
from foldlog.v1 import service_pb2 as pb

if TYPE_CHECKING:
    from foldlog.client.client import Client

logger: Final = logging.getLogger("foldlog.client")
ENDED: Final = "the server ended the stream"


class AppendStream:
    """Appends batches of any sessions without waiting for each. A context manager.

    Batches of one session apply in the order given. After a refused one, those of its session are
    refused with PreviousBatchFailedError until `resume`. A lost connection is made again, and what
    is unanswered is sent again under the same request ids. Leaving the block waits for all answers.
    """

    def __init__(self, client: Client, max_in_flight: int, max_outage_s: float | None) -> None:
        self._client = client
        self._max_in_flight = max_in_flight
        self._max_outage_s = client.timeout_s if max_outage_s is None else max_outage_s
        self._outbox = Outbox()
        self._changed = threading.Condition()
        self._to_send: SimpleQueue[pb.AppendStreamRequest | None] = SimpleQueue()
        self._is_closing = False
        self._error: FoldlogError | None = ClientClosedError("the stream is not open")
        self._call: Any = None
        self._thread = threading.Thread(target=self._work, name="foldlog-appends", daemon=True)

    def append(
        self,
        session: SessionState,
        *events: Appendable,
        expected_next_seq: int | None = None,
        require_balanced: bool = False,
        request_id: str | None = None,
    ) -> Future[Appended]:
        """Send one batch and return its future. Waits while too many are unanswered."""
        request = batch_request(session, events, expected_next_seq, require_balanced, request_id)
        ticket: Future[Appended] = Future()
        with self._changed:
            self._wait(lambda: self._outbox.has_room(self._max_in_flight))
            element = self._outbox.batch(session, request, ticket)
            if element is not None:
                self._to_send.put(element.request)
        return ticket

    def resume(self, session: SessionState) -> Future[None]:
        """Accept batches of the session again after one was refused."""
        ticket: Future[None] = Future()
        with self._changed:
            self._wait(lambda: True)
            self._to_send.put(self._outbox.resume(session, ticket).request)
        return ticket

    def flush(self) -> None:
        """Wait until everything that was sent is answered. Refusals are in the futures."""
        with self._changed:
            self._wait(lambda: not len(self._outbox))

    def _wait(self, condition: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: condition() or self._error is not None)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Wait for all answers, then end the stream."""
        try:
            self.flush()
        finally:
            self._end()
        if self._outbox.refused_count:
            logger.warning("stream_had_refusals", extra={"count": self._outbox.refused_count})

    def _end(self) -> None:
        with self._changed:
            self._is_closing = True
            self._to_send.put(None)
            if len(self._outbox) and self._call is not None:
                self._call.cancel()
            self._changed.notify_all()
        self._thread.join()

    def __enter__(self) -> Self:
        self._error = None
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._end()

    def _work(self) -> None:
        error: FoldlogError = ClientClosedError()
        try:
            attempts = Attempts(self._client.retry, self._max_outage_s)
            while (failure := self._connection(attempts)) is not None:
                self._pause(attempts.failed(failure))
        except FoldlogError as raised:
            error = raised
        finally:
            with self._changed:
                self._error = error
                self._outbox.fail_all(error)
                self._changed.notify_all()

    def _pause(self, delay_s: float) -> None:
        with self._client.wire.connecting(), self._changed:
            self._changed.wait_for(lambda: self._is_closing, delay_s)

    def _connection(self, attempts: Attempts) -> Failure | None:
        """Send and receive until the connection ends; return why, or None if that was asked for."""
        to_send = self._begin()
        call = self._call
        failure: Failure | None = Failure(ConnectionLostError(status="OK", details=ENDED), True)
        try:
            for answer in call:
                attempts.succeeded()
                if not self._take(answer):
                    break
        except grpc.RpcError as error:
            failure = failure_of_call(error)
        finally:
            call.cancel()
            to_send.put(None)
        with self._changed:
            return None if self._is_closing else failure

    def _begin(self) -> SimpleQueue[pb.AppendStreamRequest | None]:
        with self._changed:
            self._to_send = SimpleQueue()
            for request in self._outbox.to_send_again():
                self._to_send.put(request)
            if self._is_closing:
                self._to_send.put(None)
            self._changed.notify_all()
            stream = self._client.wire.callable_of("stream_stream", APPEND_STREAM)
            metadata = self._client.wire.metadata
            self._call = stream(iter(self._to_send.get, None), metadata=metadata)
            return self._to_send

    def _take(self, answer: pb.AppendStreamResponse) -> bool:
        with self._changed:
            in_order = self._outbox.answered(answer)
            self._changed.notify_all()
            return in_order
