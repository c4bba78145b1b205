"""A call with one request: that it comes, comes in time, and decodes.

Left to itself gRPC waits for ever for the message of a call that was half-closed without one, or
that never comes whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from inspect import isawaitable
from typing import Any

from google.protobuf.message import DecodeError

from foldlog._grpc import aio, grpc
from foldlog.core.errors import FoldlogError, InvalidFieldError
from foldlog.server.errors import abort

Handler = Any  # gRPC's types of handlers say nothing of asynchronous ones
Context = aio.ServicerContext[Any, Any]


class SingleRequests:
    """Registers handlers with a server, those that are to have one request in another shape.

    They then take every call as a stream of requests, and hand on the one that it is to have. No
    interceptor does it: one would be passed by each call, and make each handler anew.
    """

    def __init__(self, server: aio.Server, timeout_s: float) -> None:
        self._server = server
        self._timeout_s = timeout_s

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Register handlers, as a server does."""
        self._server.add_generic_rpc_handlers([_Around(each, self.around) for each in handlers])

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Register handlers by their names, as a server does."""
        around = {name: self.around(handler) for name, handler in handlers.items()}
        self._server.add_registered_method_handlers(service, around)

    def around(self, handler: Handler) -> Handler:
        """Return a handler in the shape that it is to be registered in."""
        if handler.request_streaming:
            return handler
        if handler.response_streaming:
            return self._streaming(handler)
        return self._single(handler)

    def _single(self, handler: Handler) -> Handler:
        async def behaviour(_: AsyncIterator[bytes], context: Context) -> Any:
            request = await self._request(handler, context)
            return await handler.unary_unary(request, context)

        return grpc.stream_unary_rpc_method_handler(
            behaviour, response_serializer=handler.response_serializer
        )

    def _streaming(self, handler: Handler) -> Handler:
        async def behaviour(_: AsyncIterator[bytes], context: Context) -> None:
            request = await self._request(handler, context)
            answering: Any = handler.unary_stream(request, context)
            if isawaitable(answering):  # it writes by itself
                await answering
                return
            async with aclosing(answering):
                async for item in answering:
                    await context.write(item)

        return grpc.stream_stream_rpc_method_handler(
            behaviour, response_serializer=handler.response_serializer
        )

    async def _request(self, handler: Handler, context: Context) -> Any:
        """Return the request, decoded, or end the call."""
        try:
            async with asyncio.timeout(self._timeout_s):
                data = await context.read()
            if data is aio.EOF:
                await abort(context, _wrong("the call ended without one"))
            return handler.request_deserializer(data)
        except TimeoutError:
            await abort(context, _wrong(f"it did not come within {self._timeout_s} s"))
        except DecodeError:
            await abort(context, _wrong("it does not decode"))


class _Around(grpc.GenericRpcHandler):
    """Gives the handlers of another in another shape, each made once."""

    def __init__(self, inner: grpc.GenericRpcHandler, around: Callable[[Handler], Handler]) -> None:
        self._inner = inner
        self._around = around
        self._made: dict[str, Handler] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """Return the handler of a call, if there is one."""
        name = handler_call_details.method
        made = self._made.get(name)
        if made is None:
            handler = self._inner.service(handler_call_details)
            if handler is None:
                return None
            made = self._made[name] = self._around(handler)
        return made


def _wrong(what: str) -> FoldlogError:
    return InvalidFieldError.of("request", what)
