"""AppendStream: batches of many sessions in flight, each session's in the order sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from foldlog import observability
from foldlog.application.decisions import Guard
from foldlog.application.domain import RequestKey, Session
from foldlog.application.incoming import Incoming, judge_batch_size, judged_events
from foldlog.application.lane import Decided, Lane, Write
from foldlog.application.tenant import Tenant
from foldlog.application.texts import cut_headers
from foldlog.core.errors import (
    FoldlogError,
    InvalidFieldError,
    PreviousBatchFailedError,
    ShuttingDownError,
)
from foldlog.internal.v1.raw_pb2 import RawAppendEventsRequest, RawAppendStreamRequest
from foldlog.server import encoding
from foldlog.server.errors import as_ours, status_of
from foldlog.server.handlers import require_decoded
from foldlog.v1.service_pb2 import AppendEventsResponse, AppendStreamResponse, ElementError

MAX_IN_FLIGHT = 256


def guard_of(request: RawAppendEventsRequest) -> Guard:
    """Return what a batch demands of the head."""
    return Guard(
        request.expected_next_seq if request.HasField("expected_next_seq") else None,
        request.writer_epoch if request.HasField("writer_epoch") else None,
    )


async def write_of(tenant: Tenant, request: RawAppendEventsRequest) -> Write:
    """Return the write of a batch. Raises the errors that need no head."""
    weight = judge_batch_size(request.events, tenant.settings.limits)
    workers = tenant.services.workers
    key, batch, contents = await workers.run(weight, _judged, tenant, request)
    return tenant.writing.append_write(
        request.session_id,
        key,
        batch,
        contents,
        guard_of(request),
        require_balanced=request.require_balanced,
        validate_only=request.validate_only,
    )


def _judged(
    tenant: Tenant, request: RawAppendEventsRequest
) -> tuple[RequestKey, list[Incoming], list[bytes]]:
    """Return a batch's key, its events, and the texts that its headers lack."""
    key = tenant.writing.request(
        request.request_id, b"append", *(each.SerializeToString() for each in request.events)
    )
    return key, *cut_headers(judged_events(request.events, tenant.settings.limits))


def refusal_of(element: object) -> FoldlogError:
    """Return why an element was not decoded."""
    try:
        require_decoded(element)
    except FoldlogError as error:
        return error
    return InvalidFieldError.of("request", "it is no element of the stream")


class AppendStream:
    """One stream: reads elements, lets them be written, and gives the answers as they come."""

    def __init__(
        self, tenant: Tenant, elements: AsyncIterator[Any], stopping: asyncio.Event
    ) -> None:
        self._tenant = tenant
        self._stopping = stopping
        self._elements = elements
        # By session: how often it was resumed, and the newest of those stretches that was refused.
        self._stretch: dict[str, int] = {}
        self._refused: dict[str, tuple[int, int]] = {}
        self._answers: asyncio.Queue[AppendStreamResponse | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._in_flight = 0
        self._is_read = False

    async def answers(self) -> AsyncIterator[AppendStreamResponse]:
        """Yield the answers, in the order of commit, until all elements are answered.

        A server that stops reads no further element, answers those it has, and says so.
        """
        reading = asyncio.create_task(self._read())
        ending = asyncio.create_task(self._end_when_stopping(reading))
        try:
            while (answer := await self._answers.get()) is not None:
                yield answer
            if self._stopping.is_set():
                raise ShuttingDownError
            await reading
        finally:
            reading.cancel()
            ending.cancel()

    async def _end_when_stopping(self, reading: asyncio.Task[None]) -> None:
        await self._stopping.wait()
        reading.cancel()

    async def _read(self) -> None:
        try:
            async for element in self._elements:
                await self._room.acquire()
                self._in_flight += 1
                await self._take(element)
        finally:
            self._is_read = True
            self._end_if_done()

    async def _take(self, element: RawAppendStreamRequest) -> None:
        if not isinstance(element, RawAppendStreamRequest):
            self._refuse(0, refusal_of(element))
            return
        match element.WhichOneof("kind"):
            case "resume":
                session_id = element.resume.session_id
                self._stretch[session_id] = self._stretch.get(session_id, 0) + 1
                self._answer(
                    AppendStreamResponse(number=element.number, appended=AppendEventsResponse())
                )
            case "batch":
                await self._append(element.number, element.batch)
            case _:
                error = InvalidFieldError.of("kind", "batch or resume is required")
                self._refuse(element.number, error)

    async def _append(self, number: int, batch: RawAppendEventsRequest) -> None:
        session_id = batch.session_id
        stretch = self._stretch.get(session_id, 0)
        try:
            self._require_accepted(session_id, stretch)
            await self._tenant.meter.ready()
            self._tenant.meter.count_call()
            write = await write_of(self._tenant, batch)
            async with self._tenant.lanes.use(self._tenant.name, session_id) as lane:
                await lane.opened()
                self._guard(write, session_id, number, stretch)
                lane.pins += 1
                lane.enqueue(write)
        except FoldlogError as error:
            self._note_refused(session_id, stretch, number)
            self._refuse(number, error)
            return
        except asyncio.CancelledError:
            self._refuse(number, ShuttingDownError())
            raise
        write.done.add_done_callback(self._completion(lane, number))

    def _require_accepted(self, session_id: str, stretch: int) -> None:
        """Raise if a batch before, with no resume in between, was refused."""
        refused_stretch, number = self._refused.get(session_id, (-1, 0))
        if refused_stretch >= stretch:
            raise PreviousBatchFailedError(session_id=session_id, number=number)

    def _note_refused(self, session_id: str, stretch: int, number: int) -> None:
        if self._refused.get(session_id, (-1, 0))[0] < stretch:
            self._refused[session_id] = (stretch, number)

    def _guard(self, write: Write, session_id: str, number: int, stretch: int) -> None:
        """Let the write be refused if an earlier one of its session is, even while both wait."""
        decide: Callable[[Session, Any], Decided] = write.decide

        def guarded(head: Session, context: Any) -> Decided:
            self._require_accepted(session_id, stretch)
            return decide(head, context)

        def on_failed() -> None:
            self._note_refused(session_id, stretch, number)

        write.decide = guarded
        write.on_failed = on_failed

    def _completion(self, lane: Lane, number: int) -> Callable[[asyncio.Future[Any]], None]:
        def complete(done: asyncio.Future[Any]) -> None:
            lane.pins -= 1
            error = done.exception()
            if error is None:
                answer = encoding.appended(done.result())
                self._answer(AppendStreamResponse(number=number, appended=answer))
            else:
                self._refuse(number, error)

        return complete

    def _refuse(self, number: int, error: BaseException) -> None:
        ours = as_ours(error)
        observability.metrics.append_failed(ours.reason)
        status = status_of(ours)
        refused = ElementError(code=status.code, message=status.message, details=status.details)
        self._answer(AppendStreamResponse(number=number, error=refused))

    def _answer(self, answer: AppendStreamResponse) -> None:
        self._answers.put_nowait(answer)
        self._in_flight -= 1
        self._room.release()
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._is_read and self._in_flight == 0:
            self._answers.put_nowait(None)
