"""Serves handlers as Foldlog serves its own: the same event loop, options and settings of gRPC."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, Final

from foldlog._grpc import aio, grpc
from foldlog.server.run import loop_factory
from foldlog.server.transport import options_of
from foldlog.settings import Settings

SERVICE: Final = "foldlog.bench.Bare"


def method(name: str) -> str:
    """Return the name of one of the methods on the wire."""
    return f"/{SERVICE}/{name}"


def serve(handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
    """Serve at a free port, which is printed, until standard input ends."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(handlers))


async def _serve(handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
    server = aio.server(options=options_of(Settings()))
    generic = grpc.method_handlers_generic_handler(SERVICE, dict(handlers))
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)
