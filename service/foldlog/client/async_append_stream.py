"""A stream of appends over the asyncio client: many batches in flight, answered by futures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from foldlog._grpc import aio, grpc
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
    from foldlog.client.async_client import AsyncClient

logger: Final = logging.getLogger("foldlog.client")
ENDED: Final = "the server ended the stream"


class AsyncAppendStream:
    """Appends batches of any sessions without waiting for each. An asynchronous context manager.

    Batches of one session apply in the order given. After a refused one, those of its session are
    refused with PreviousBatchFailedError until `resume`. A lost connection is made again, and what
    is unanswered is sent again under the same request ids. Leaving the block waits for all answers.
    """

    def __init__(self, client: AsyncClient, max_in_flight: int, max_outage_s: float | None) -> None:
        self._client = client
        self._max_in_flight = max_in_flight
        self._max_outage_s = client.timeout_s if max_outage_s is None else max_outage_s
        self._outbox = Outbox()
        self._changed = asyncio.Event()
        self._to_send: asyncio.Queue[pb.AppendStreamRequest] = asyncio.Queue()
        self._error: FoldlogError | None = ClientClosedError("the stream is not open")
        self._task: asyncio.Task[None] | None = None

    async def append(
        self,
        session: SessionState,
        *events: Appendable,
        expected_next_seq: int | None = None,
        require_balanced: bool = False,
        request_id: str | None = None,
    ) -> asyncio.Future[Appended]:
        """Send one batch and return its future. Waits while too many are unanswered."""
        request = batch_request(session, events, expected_next_seq, require_balanced, request_id)
        ticket: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        await self._wait(lambda: self._outbox.has_room(self._max_in_flight))
        element = self._outbox.batch(session, request, ticket)
        if element is not None:
            self._to_send.put_nowait(element.request)
        return ticket

    async def resume(self, session: SessionState) -> asyncio.Future[None]:
        """Accept batches of the session again after one was refused."""
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._wait(lambda: True)
        self._to_send.put_nowait(self._outbox.resume(session, ticket).request)
        return ticket

    async def flush(self) -> None:
        """Wait until everything that was sent is answered. Refusals are in the futures."""
        await self._wait(lambda: not len(self._outbox))

    async def _wait(self, condition: Callable[[], bool]) -> None:
        while self._error is None and not condition():
            self._changed.clear()
            await self._changed.wait()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """Wait for all answers, then end the stream."""
        try:
            await self.flush()
        finally:
            await self._end()
        if self._outbox.refused_count:
            logger.warning("stream_had_refusals", extra={"count": self._outbox.refused_count})

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def __aenter__(self) -> Self:
        self._error = None
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
        else:
            await self._end()

    async def _work(self) -> None:
        error: FoldlogError = ClientClosedError()
        try:
            attempts = Attempts(self._client.retry, self._max_outage_s)
            while True:
                failure = await self._connection(attempts)
                await asyncio.sleep(attempts.failed(failure))
        except FoldlogError as raised:
            error = raised
        finally:
            self._error = error
            self._outbox.fail_all(error)
            self._changed.set()

    async def _connection(self, attempts: Attempts) -> Failure:
        """Send and receive until the connection ends, and return why."""
        self._to_send = asyncio.Queue()
        for request in self._outbox.to_send_again():
            self._to_send.put_nowait(request)
        self._changed.set()
        wire = self._client.wire
        call = wire.callable_of("stream_stream", APPEND_STREAM)(metadata=wire.metadata)
        sender = asyncio.create_task(self._send(call, self._to_send))
        try:
            return await self._receive(call, attempts)
        except grpc.RpcError as error:
            return failure_of_call(error)
        finally:
            sender.cancel()
            call.cancel()

    async def _send(self, call: Any, to_send: asyncio.Queue[pb.AppendStreamRequest]) -> None:
        """Write what is to be sent. That the connection ended shows where answers are received."""
        try:
            while True:
                await call.write(await to_send.get())
        except (grpc.RpcError, asyncio.InvalidStateError):
            return

    async def _receive(self, call: Any, attempts: Attempts) -> Failure:
        in_order = True
        while in_order and (answer := await call.read()) is not aio.EOF:
            attempts.succeeded()
            in_order = self._outbox.answered(answer)
            self._changed.set()
        return Failure(ConnectionLostError(status="OK", details=ENDED), is_transient=True)
