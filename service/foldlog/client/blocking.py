"""The blocking driver: performs the steps of operations on a gRPC channel."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, cast

from foldlog._grpc import grpc
from foldlog.client.channel import OPTIONS
from foldlog.client.credentials import Metadata
from foldlog.client.deferred import Deferred
from foldlog.client.errors import ClientClosedError
from foldlog.client.state import SessionState
from foldlog.client.steps import (
    Done,
    Emission,
    Emit,
    Failure,
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
    from google.protobuf.message import Message as ProtoMessage

    from foldlog.client.methods import Method

T = TypeVar("T")
Owner = TypeVar("Owner")
P = ParamSpec("P")
UPLOAD_AHEAD: Final = 4
UPLOAD_POLL_S: Final = 0.1


def _channel(address: str, tls: Tls | None) -> grpc.Channel:
    if tls is None:
        return grpc.insecure_channel(address, options=OPTIONS)
    return grpc.secure_channel(address, tls.credentials(), options=(*OPTIONS, *tls.options()))


class Wire:
    """A channel, and how steps are performed on it. Threads may share it."""

    def __init__(self, address: str, tls: Tls | None = None, metadata: Metadata = ()) -> None:
        self._channel = _channel(address, tls)
        self.metadata = metadata
        self._callables: dict[tuple[str, str], Any] = {}
        self._closed = threading.Event()

    def close(self) -> None:
        """Close the channel; calls that are under way fail."""
        self._closed.set()
        self._channel.close()

    def callable_of(self, shape: str, method: Method[Any]) -> Any:
        """Return gRPC's callable of a method: its shape is "unary_unary" and the like.

        Raises ClientClosedError.
        """
        if self._closed.is_set():
            raise ClientClosedError
        key = (shape, method.name)
        if key not in self._callables:
            self._callables[key] = getattr(self._channel, shape)(
                method.path,
                request_serializer=lambda request: request.SerializeToString(),
                response_deserializer=method.answer.FromString,
            )
        return self._callables[key]

    def run(self, operation: Operation[T]) -> T:
        """Perform an operation and return its result."""
        run = Run(operation)
        try:
            while not isinstance(step := run.advance(), Done):
                self.perform_in(run, step)
            return cast(T, step.result)
        finally:
            run.close()

    def perform_in(self, run: Run, step: Step | Emit[Any]) -> None:
        """Perform a step of a run and note there what came of it."""
        try:
            run.outcome = self._perform(step)
        except FoldlogError as error:
            run.error = error

    def _perform(self, step: Step | Emit[Any]) -> object:
        match step:
            case Unary(method, request, timeout_s):
                call = self.callable_of("unary_unary", method)
                return _answer(call, request, timeout_s, self.metadata)
            case Upload():
                return self._upload(step)
            case Open(method, request, timeout_s):
                stream_of = self.callable_of("unary_stream", method)
                return stream_of(request, timeout=timeout_s, metadata=self.metadata)
            case Receive(stream):
                return _next(stream)
            case Sleep(delay_s):
                with self.connecting():
                    if self._closed.wait(delay_s):
                        raise ClientClosedError
        return None

    @contextmanager
    def connecting(self) -> Iterator[None]:
        """Let the channel get on with connecting meanwhile.

        It has no thread of its own for that: it gets on while a call waits, or while it is watched.
        Calls that find it without a connection fail at once, and could do so for ever.
        """
        self._channel.subscribe(_ignore)
        try:
            yield
        finally:
            self._channel.unsubscribe(_ignore)

    def _upload(self, step: Upload) -> object:
        """Iterate here, in the caller's thread: gRPC takes requests over in a thread of its own."""
        handed: queue.Queue[ProtoMessage | None] = queue.Queue(UPLOAD_AHEAD)
        send = self.callable_of("stream_unary", step.method)
        call = send.future(iter(handed.get, None), timeout=step.timeout_s, metadata=self.metadata)
        try:
            for request in step.requests():
                if not _hand_over(handed, request, call):
                    break
            else:
                _hand_over(handed, None, call)
            return call.result()
        except grpc.RpcError as error:
            return _failure_of(error)
        finally:
            call.cancel()
            _release(handed)


def _ignore(connectivity: grpc.ChannelConnectivity) -> None:
    """Take note of nothing: that the channel is watched is enough."""


def _failure_of(error: grpc.RpcError) -> Failure:
    from foldlog.client.status import failure_of_call

    return failure_of_call(error)


def _answer(call: Any, request: ProtoMessage, timeout_s: float, metadata: Metadata) -> object:
    try:
        return call(request, timeout=timeout_s, metadata=metadata)
    except grpc.RpcError as error:
        return _failure_of(error)


def _next(stream: Stream) -> object:
    try:
        return next(cast(Iterator[object], stream), None)
    except grpc.RpcError as error:
        return _failure_of(error)


def _hand_over(handed: queue.Queue[Any], request: ProtoMessage | None, call: Any) -> bool:
    """Wait for room and put the request there; answer False if the call ended meanwhile."""
    while not call.done():
        try:
            handed.put(request, timeout=UPLOAD_POLL_S)
            return True
        except queue.Full:
            continue
    return False


def _release(handed: queue.Queue[Any]) -> None:
    """Let gRPC's thread end if it waits for a request. If the queue is full it does not wait."""
    try:
        handed.put_nowait(None)
    except queue.Full:
        return


class Items(Generic[T]):
    """An iterator over what an emission hands out. `close()` ends it, from any thread."""

    def __init__(self, wire: Wire, emission: Emission[T]) -> None:
        self._wire = wire
        self._run = Run(emission)
        self._stream: Stream | None = None
        self._closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while not self._closed:
            step = self._run.advance()
            match step:
                case Emit(value):
                    return cast(T, value)
                case Done():
                    self._closed = True
                case _:
                    self._perform(step)
        self._run.close()
        raise StopIteration

    def _perform(self, step: Step) -> None:
        self._wire.perform_in(self._run, step)
        if isinstance(step, Open) and self._run.error is None:
            self._stream = cast(Stream, self._run.outcome)

    def close(self) -> None:
        """End the iteration; what waits for the next item returns."""
        self._closed = True
        if self._stream is not None:
            self._stream.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def wire_of(owner: object) -> Wire:
    """Return the wire of a client, or of a session's client."""
    client = owner.client if isinstance(owner, SessionState) else owner
    return cast(Wire, client.wire)  # type: ignore[attr-defined]


def blocking(
    operation: Callable[[], Callable[Concatenate[Owner, P], Operation[T]]],
) -> Callable[Concatenate[Owner, P], T]:
    """Make an operation a method that returns its result. It is asked for at the first use."""

    def made() -> Callable[Concatenate[Owner, P], T]:
        begin = operation()

        @wraps(begin)
        def method(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return wire_of(owner).run(begin(owner, *args, **kwargs))

        return method

    return cast(Callable[Concatenate[Owner, P], T], Deferred(made))


def iterating(
    emission: Callable[[], Callable[Concatenate[Owner, P], Emission[T]]],
) -> Callable[Concatenate[Owner, P], Items[T]]:
    """Make an emission a method that returns an iterator. It is asked for at the first use."""

    def made() -> Callable[Concatenate[Owner, P], Items[T]]:
        begin = emission()

        @wraps(begin)
        def method(owner: Owner, /, *args: P.args, **kwargs: P.kwargs) -> Items[T]:
            return Items(wire_of(owner), begin(owner, *args, **kwargs))

        return method

    return cast(Callable[Concatenate[Owner, P], Items[T]], Deferred(made))
