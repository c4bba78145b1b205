"""A call with one request: that it comes, comes in time, and decodes.

Left to itself gRPC waits for ever for the message of a call that was half-closed without one, or
that never comes whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from inspect import isawaitable
from typing import Any

from google.protobuf.message import DecodeError

from foldlog._grpc import aio, grpc
from foldlog.core.errors import FoldlogError, InvalidFieldError
from foldlog.server.errors import abort

Handler = Any  # gRPC's types of handlers say nothing of asynchronous ones
Context = aio.ServicerContext[Any, Any]


class SingleRequests(aio.ServerInterceptor):
    """Takes every call as a stream of requests, and hands on the one that it is to have."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return a call's handler, or one around it."""
        handler = await continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        if handler.response_streaming:
            return self._streaming(handler)
        return self._single(handler)

    def _single(self, handler: Handler) -> Handler:
        async def behaviour(requests: AsyncIterator[bytes], context: Context) -> Any:
            request = await self._request(handler, requests, context)
            return await handler.unary_unary(request, context)

        return grpc.stream_unary_rpc_method_handler(
            behaviour, response_serializer=handler.response_serializer
        )

    def _streaming(self, handler: Handler) -> Handler:
        async def behaviour(requests: AsyncIterator[bytes], context: Context) -> None:
            request = await self._request(handler, requests, context)
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

    async def _request(
        self, handler: Handler, requests: AsyncIterator[bytes], context: Context
    ) -> Any:
        """Return the request, decoded, or end the call."""
        try:
            async with asyncio.timeout(self._timeout_s):
                data = await anext(requests, None)
            if data is None:
                await abort(context, _wrong("the call ended without one"))
            return handler.request_deserializer(data)
        except TimeoutError:
            await abort(context, _wrong(f"it did not come within {self._timeout_s} s"))
        except DecodeError:
            await abort(context, _wrong("it does not decode"))


def _wrong(what: str) -> FoldlogError:
    return InvalidFieldError.of("request", what)
