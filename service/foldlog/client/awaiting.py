"""The asyncio driver: performs the steps of operations on a grpc.aio channel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from foldlog._grpc import aio, grpc
from foldlog.client.channel import OPTIONS
from foldlog.client.credentials import Metadata
from foldlog.client.deferred import Deferred
from foldlog.client.errors import ClientClosedError
from foldlog.client.state import SessionState
from foldlog.client.steps import (
    Done,
    Emission,
    Emit,
    Open,
    Operation,
    Receive,
    Run,
    Sleep,
    Step,
    Stream,
    Unary,
    Upload,
)
from foldlog.client.tls import Tls
from foldlog.core.errors import FoldlogError

if TYPE_CHECKING:
    from foldlog.client.methods import Method

T = TypeVar("T")
Owner = TypeVar("Owner")
P = ParamSpec("P")


class AsyncWire:
    """A channel of one event loop, made at the first call, and how steps are performed on it."""

    def __init__(self, address: str, tls: Tls | None = None, metadata: Metadata = ()) -> None:
        self._address = address
        self._tls = tls
        self._credentials = None if tls is None else tls.credentials()
        self.metadata = metadata
        self._channel: aio.Channel | None = None
        self._callables: dict[tuple[str, str], Any] = {}
        self._closed = False

    def _opened(self) -> aio.Channel:
        if self._tls is None or self._credentials is None:
            return aio.insecure_channel(self._address, options=OPTIONS)
        options = (*OPTIONS, *self._tls.options())
        return aio.secure_channel(self._address, self._credentials, options=options)

    async def close(self) -> None:
        """Close the channel; calls that are under way fail."""
        self._closed = True
        if self._channel is not None:
            await self._channel.close()

    def callable_of(self, shape: str, method: Method[Any]) -> Any:
        """Return gRPC's callable of a method: its shape is "unary_unary" and the like.

        Raises ClientClosedError.
        """
        if self._closed:
            raise ClientClosedError
        if self._channel is None:
            self._channel = self._opened()
        key = (shape, method.name)
        if key not in self._callables:
            self._callables[key] = getattr(self._channel, shape)(
                method.path,
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=method.answer.FromString,
            )
        return self._callables[key]

    async def run(self, operation: Operation[T]) -> T:
        """Perform an operation and return its result."""
        run = Run(operation)
        try:
            while not isinstance(step := run.advance(), Done):
                await self.perform_in(run, step)
            return cast(T, step.result)
        finally:
            run.close()

    async def perform_in(self, run: Run, step: Step | Emit[Any]) -> None:
        """Perform a step of a run and note there what came of it."""
        try:
            run.outcome = await self._perform(step)
        except FoldlogError as error:
            run.error = error

    async def _perform(self, step: Step | Emit[Any]) -> object:
        match step:
            case Unary(method, request, timeout_s):
                send = self.callable_of("unary_unary", method)
                return await _outcome(send(request, timeout=timeout_s, metadata=self.metadata))
            case Upload():
                return await self._upload(step)
            case Open(method, request, timeout_s):
                stream_of = self.callable_of("unary_stream", method)
                return stream_of(request, timeout=timeout_s, metadata=self.metadata)
            case Receive(stream):
                answer = await _outcome(cast(Any, stream).read())
                return None if answer is aio.EOF else answer
            case Sleep(delay_s):
                await asyncio.sleep(delay_s)
        return None

    async def _upload(self, step: Upload) -> object:
        send = self.callable_of("stream_unary", step.method)
        call = send(timeout=step.timeout_s, metadata=self.metadata)
        try:
            # A write to a call that has ended raises; why it ended is what the call answers.
            with suppress(grpc.RpcError, asyncio.InvalidStateError):
                for request in step.requests():
                    await call.write(request)
                await call.done_writing()
            return await _outcome(call)
        finally:
            call.cancel()


async def _outcome(awaitable: Awaitable[object]) -> object:
    """Return what gRPC answers, or the failure that it raises."""
    try:
        return await awaitable
    except grpc.RpcError as error:
        from foldlog.client.status import failure_of_call

        return failure_of_call(error)
    except asyncio.CancelledError:
        # grpc.aio raises it also where the call was cancelled, and the task was not.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ClientClosedError from None


class AsyncItems(Generic[T]):
    """An asynchronous iterator over what an emission hands out. `close()` ends it."""

    def __init__(self, wire: AsyncWire, emission: Emission[T]) -> None:
        self._wire = wire
        self._run = Run(emission)
        self._stream: Stream | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._closed:
            step = self._run.advance()
            match step:
                case Emit(value):
                    return cast(T, value)
                case Done():
                    self._closed = True
                case _:
                    await self._perform(step)
        self._run.close()
        raise StopAsyncIteration

    async def _perform(self, step: Step) -> None:
        await self._wire.perform_in(self._run, step)
        if isinstance(step, Open) and self._run.error is None:
            self._stream = cast(Stream, self._run.outcome)

    def close(self) -> None:
        """End the iteration; what waits for the next item returns."""
        self._closed = True
        if self._stream is not None:
            self._stream.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def wire_of(owner: object) -> AsyncWire:
    """Return the wire of a client, or of a session's client."""
    client = owner.client if isinstance(owner, SessionState) else owner
    return cast(AsyncWire, client.wire)  # type: ignore[attr-defined]


def awaiting(
    operation: Callable[[], Callable[Concatenate[Owner, P], Operation[T]]],
) -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]:
    """Make an operation a coroutine method. It is asked for at the first use."""

    def made() -> Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]:
        begin = operation()

        @wraps(begin)
        async def method(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await wire_of(owner).run(begin(owner, *args, **kwargs))

        return method

    return cast(Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]], Deferred(made))


def iterating(
    emission: Callable[[], Callable[Concatenate[Owner, P], Emission[T]]],
) -> Callable[Concatenate[Owner, P], AsyncItems[T]]:
    """Make an emission a method that returns an asynchronous iterator, asked for at first use."""

    def made() -> Callable[Concatenate[Owner, P], AsyncItems[T]]:
        begin = emission()

        @wraps(begin)
        def method(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> AsyncItems[T]:
            return AsyncItems(wire_of(owner), begin(owner, *args, **kwargs))

        return method

    return cast(Callable[Concatenate[Owner, P], AsyncItems[T]], Deferred(made))
