"""Between gRPC and the servicer: decoding, errors, spans and metrics in one place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as ProtoMessage

from foldlog import observability
from foldlog._grpc import aio, grpc
from foldlog.application.application import TENANTS, SessionApplication
from foldlog.application.audit import Act, AuditLog
from foldlog.application.tenant import Tenant
from foldlog.core.errors import (
    InvalidFieldError,
    ShuttingDownError,
    TooLargeError,
)
from foldlog.server.callers import Authenticator, Caller, Standing, metadata_of
from foldlog.server.crowding import is_crowded
from foldlog.server.errors import CODE_OF_NUMBER, abort, as_ours, status_of
from foldlog.server.permissions import is_audited, require_permitted

SERVICE = "foldlog.v1.SessionService"
APPENDING = frozenset({"AppendEvents", "SeedSession", "RestoreEvents", "ImportSession"})

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


@dataclass(frozen=True, slots=True)
class Crowded:
    """Bytes that would decode to more fields than a request may have."""

    limit: int


def decoder(
    kind: type[ProtoMessage], most_fields: int
) -> Callable[[bytes], ProtoMessage | Malformed | Crowded]:
    """Return a deserialiser that never raises: gRPC would answer INTERNAL."""

    def decode(data: bytes) -> ProtoMessage | Malformed | Crowded:
        if is_crowded(data, kind, most_fields):
            return Crowded(most_fields)
        try:
            return kind.FromString(data)
        except DecodeError:
            return Malformed(kind.DESCRIPTOR.full_name)

    return decode


def encode(message: ProtoMessage | bytes) -> bytes:
    """Return a response's bytes, which it may be already."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def require_decoded(request: object) -> None:
    """Raise InvalidFieldError if a request did not decode, TooLargeError if it was not to."""
    if isinstance(request, Crowded):
        # They are counted no further.
        raise TooLargeError(field="request.fields", size=request.limit + 1, limit=request.limit)
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
        audit: AuditLog | None = None,
    ) -> None:
        self._audit = audit
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
        most_fields = self._app.settings.limits.request_fields
        return make(behaviour, decoder(rpc.request, most_fields), encode)

    def _single(self, name: str, rpc: Rpc) -> Callable[[Any, Any], Awaitable[Any]]:
        audits = self._audit is not None and is_audited(name)

        async def behaviour(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            async with _Call(name, context) as call:
                method, caller = await self._method(name, call)
                checked = _checked(request, rpc)
                if rpc.takes_stream:
                    checked = self._standing(call, caller).required(checked)
                if not audits:
                    return await method(checked)
                async with self._audited(name, caller, checked):
                    return await method(checked)

        return behaviour

    def _streaming(self, name: str, rpc: Rpc) -> Callable[[Any, Any], AsyncIterator[Any]]:
        async def behaviour(
            request: Any, context: aio.ServicerContext[Any, Any]
        ) -> AsyncIterator[Any]:
            async with _Call(name, context) as call:
                method, caller = await self._method(name, call)
                items: Any = method(_checked(request, rpc))
                standing = self._standing(call, caller)
                with self._counted(rpc, caller):
                    ends = self._ends(rpc, standing)
                    if ends:
                        items = until(items, ends)
                    async for item in items:
                        await standing.require()
                        yield item

        return behaviour

    def _standing(self, call: _Call, caller: Caller) -> Standing:
        return Standing(self._authenticator, call.metadata, caller)

    def _counted(self, rpc: Rpc, caller: Caller) -> AbstractContextManager[None]:
        """Count a watch of its tenant for as long as it is open; nothing for other streams."""
        if not rpc.is_endless:
            return nullcontext()
        return self._app.tenant(caller.tenant, caller.scope).meter.watching()

    async def _method(self, name: str, call: _Call) -> tuple[Callable[[Any], Any], Caller]:
        """Return what answers a call, of its caller's tenant, and the caller.

        Raises UnauthenticatedError, PermissionDeniedError and QuotaExceededError.
        """
        caller = await self._authenticator.caller_of(call.metadata)
        require_permitted(caller, name)
        tenant = self._app.tenant(caller.tenant, caller.scope)
        await tenant.meter.ready()
        tenant.meter.count_call()
        return self._rpcs_of(tenant)[name].method, caller

    def _audited(
        self, name: str, caller: Caller, request: Any
    ) -> AbstractAsyncContextManager[None]:
        """Return what surrounds a call that the audit log is to have."""
        assert self._audit is not None
        on = MessageToDict(request, preserving_proto_field_name=True)
        return self._audit.of(caller.tenant, Act(name, caller.name, on))

    def _ends(self, rpc: Rpc, standing: Standing) -> list[Coroutine[Any, Any, None]]:
        """Return what ends a stream before its own end, even while nothing passes."""
        ends = []
        if rpc.is_endless:
            ends.append(self._stopped())
        again_s = self._authenticator.again_s
        if again_s is not None and (rpc.is_endless or rpc.takes_stream):
            ends.append(self._disowned(standing, again_s))
        return ends

    async def _stopped(self) -> None:
        await self._stopping.wait()
        raise ShuttingDownError

    async def _disowned(self, standing: Standing, again_s: float) -> None:
        while True:
            await asyncio.sleep(again_s)
            await standing.look()


async def until(
    items: AsyncIterator[Any], ends: Sequence[Coroutine[Any, Any, None]]
) -> AsyncIterator[Any]:
    """Pass a stream on until one of these raises, then end it with what that raised."""
    ending = [asyncio.ensure_future(end) for end in ends]
    upcoming: asyncio.Future[Any] | None = None
    try:
        while True:
            upcoming = asyncio.ensure_future(anext(items))
            await asyncio.wait((upcoming, *ending), return_when=asyncio.FIRST_COMPLETED)
            if not upcoming.done():
                for end in ending:
                    if end.done():
                        end.result()
            try:
                item = upcoming.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        for end in ending:
            end.cancel()
        if upcoming is not None and not upcoming.done():
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)
        await asyncio.gather(*ending, return_exceptions=True)
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
        self.metadata = metadata_of(pairs)
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
            await abort(self._context, ours)
