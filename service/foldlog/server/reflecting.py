"""Reflection tells the API: where callers have to be known, it answers to those who are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from grpc_reflection.v1alpha import reflection

from foldlog._grpc import aio, grpc
from foldlog.core.errors import FoldlogError
from foldlog.server.callers import Authenticator, metadata_of
from foldlog.server.errors import abort, as_ours

PATH = f"/{reflection.SERVICE_NAME}/"


class ReflectionGuard(aio.ServerInterceptor):
    """Asks for the caller of a call to reflection; others do it themselves, or need none."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the handler of a call, or one that refuses it."""
        if handler_call_details.method.startswith(PATH):
            pairs = handler_call_details.invocation_metadata or ()
            metadata = metadata_of((str(key), value) for key, value in pairs)
            try:
                await self._authenticator.caller_of(metadata)
            except FoldlogError as error:
                return _refusing(error)
        return await continuation(handler_call_details)


def _refusing(error: FoldlogError) -> grpc.RpcMethodHandler[Any, Any]:
    async def refuse(_: Any, context: aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        await abort(context, as_ours(error))
        yield b""

    return grpc.stream_stream_rpc_method_handler(refuse)
