"""Gives back the bytes it gets, call by call or over a stream: `python -m bench.servers.echo`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from foldlog._grpc import grpc

from bench.servers.bare import serve


async def call(request: bytes, context: Any) -> bytes:
    """Answer with the request."""
    return request


async def stream(elements: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    """Answer with the elements."""
    async for element in elements:
        yield element


if __name__ == "__main__":
    serve(
        {
            "Call": grpc.unary_unary_rpc_method_handler(call),
            "Stream": grpc.stream_stream_rpc_method_handler(stream),
        }
    )
