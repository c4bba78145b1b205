"""Between gRPC and the servicer: decoding, errors, spans and metrics in one place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtoMessage

from foldlog import observability
from foldlog._grpc import aio, grpc
from foldlog.application.application import TENANTS, SessionApplication
from foldlog.application.tenant import Tenant
from foldlog.core.errors import FoldlogError, InvalidFieldError, ShuttingDownError
from foldlog.server.callers import Authenticator
from foldlog.server.errors import DETAILS_KEY, as_ours, status_of

SERVICE = "foldlog.v1.SessionService"
APPENDING = frozenset({"AppendEvents", "SeedSession", "RestoreEvents", "ImportSession"})
CODE_OF_NUMBER = {code.value[0]: code for code in grpc.StatusCode}

Method = Callable[[Any], Awaitable[Any]] | Callable[[Any], AsyncIterator[Any]]


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are no message of the expected type."""

    type_name: str


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC: how its request is read, and what answers it.

    `is_endless` marks streams that go on until the caller or the server ends them;
    `judges_elements` those that answer an element which does not decode by itself.
    """

    method: Method
    request: type[ProtoMessage]
    takes_stream: bool = False
    gives_stream: bool = False
    is_endless: bool = False
    judges_elements: bool = False


def decoder(kind: type[ProtoMessage]) -> Callable[[bytes], ProtoMessage | Malformed]:
    """Return a deserialiser that never raises: gRPC would answer INTERNAL."""

    def decode(data: bytes) -> ProtoMessage | Malformed:
        try:
            return kind.FromString(data)
        except DecodeError:
            return Malformed(kind.DESCRIPTOR.full_name)

    return decode


def encode(message: ProtoMessage | bytes) -> bytes:
    """Return a response's bytes, which it may be already."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def require_decoded(request: object) -> None:
    """Raise InvalidFieldError if a request did not decode."""
    if isinstance(request, Malformed):
        raise InvalidFieldError.of("request", f"it does not decode as {request.type_name}")


async def _decoded(elements: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for element in elements:
        require_decoded(element)
        yield element


class Handlers:
    """Makes gRPC handlers of a tenant's RPCs, whichever tenant the caller belongs to."""

    def __init__(
        self,
        app: SessionApplication,
        rpcs_of: Callable[[Tenant], Mapping[str, Rpc]],
        authenticator: Authenticator,
        stopping: asyncio.Event,
    ) -> None:
        self._app = app
        self._rpcs_of = lru_cache(TENANTS)(rpcs_of)
        self._authenticator = authenticator
        self._stopping = stopping

    def generic(self) -> grpc.GenericRpcHandler:
        """Return the handler of the whole service."""
        rpcs = self._rpcs_of(self._app.tenant())
        handlers = {name: self._handler(name, rpc) for name, rpc in rpcs.items()}
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _handler(self, name: str, rpc: Rpc) -> grpc.RpcMethodHandler[Any, Any]:
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[rpc.takes_stream, rpc.gives_stream]
        behaviour = self._streaming(name, rpc) if rpc.gives_stream else self._single(name, rpc)
        return make(behaviour, decoder(rpc.request), encode)

    def _single(self, name: str, rpc: Rpc) -> Callable[[Any, Any], Awaitable[Any]]:
        async def behaviour(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            async with _Call(name, context) as call:
                method = await self._method(name, call)
                return await method(_checked(request, rpc))

        return behaviour

    def _streaming(self, name: str, rpc: Rpc) -> Callable[[Any, Any], AsyncIterator[Any]]:
        async def behaviour(
            request: Any, context: aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[Any]:
            async with _Call(name, context) as call:
                method = await self._method(name, call)
                items: Any = method(_checked(request, rpc))
                if rpc.is_endless:
                    items = self._until_stopped(items)
                async for item in items:
                    yield item

        return behaviour

    async def _method(self, name: str, call: _Call) -> Callable[[Any], Any]:
        """Return what answers a call: of its caller's tenant."""
        caller = await self._authenticator.caller_of(call.metadata)
        return self._rpcs_of(self._app.tenant(caller.tenant))[name].method

    async def _until_stopped(self, items: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass a stream on until the server stops, then end it with a reason."""
        stopped = asyncio.ensure_future(self._stopping.wait())
        upcoming: asyncio.Future[Any] | None = None
        try:
            while True:
                upcoming = asyncio.ensure_future(anext(items))
                await asyncio.wait((upcoming, stopped), return_when=asyncio.FIRST_COMPLETED)
                if not upcoming.done():
                    raise ShuttingDownError
                try:
                    item = upcoming.result()
                except StopAsyncIteration:
                    return
                yield item
        finally:
            stopped.cancel()
            if upcoming is not None and not upcoming.done():
                upcoming.cancel()
                await asyncio.wait((upcoming,))
            await items.aclose()  # type: ignore[attr-defined]


def _checked(request: Any, rpc: Rpc) -> Any:
    if rpc.takes_stream:
        return request if rpc.judges_elements else _decoded(request)
    require_decoded(request)
    return request


class _Call:
    """What surrounds every call: its span, its metrics, and its errors as statuses."""

    def __init__(self, name: str, context: aio.ServicerContext[Any, Any]) -> None:
        self._name = name
        self._context = context
        self._started = time.perf_counter()
        pairs = [(str(key), value) for key, value in context.invocation_metadata() or ()]
        self.metadata = dict(pairs)
        self._span = observability.tracing.call_span(name, pairs)

    async def __aenter__(self) -> Self:
        self._span.__enter__()
        return self

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._span.__exit__(kind, error, trace)
        seconds = time.perf_counter() - self._started
        if error is None:
            observability.metrics.call_finished(self._name, "OK", seconds)
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            observability.metrics.call_finished(self._name, "CANCELLED", seconds)
        elif isinstance(error, Exception):
            ours = as_ours(error)
            code = CODE_OF_NUMBER[status_of(ours).code]
            observability.metrics.call_finished(self._name, code.name, seconds)
            if self._name in APPENDING:
                observability.metrics.append_failed(ours.reason)
            await self._abort(ours)

    async def _abort(self, error: FoldlogError) -> None:
        status = status_of(error)
        trailer = ((DETAILS_KEY, status.SerializeToString()),)
        await self._context.abort(CODE_OF_NUMBER[status.code], status.message, trailer)
