"""A client that goes away in the middle of a call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

CONNECT_DEADLINE_S = 10.0


def abandon(address: str, method: str, elements: Sequence[bytes]) -> None:
    """Begin a call, send the elements, and drop the connection before the call is whole."""
    sent, never = threading.Event(), threading.Event()

    def requests() -> Iterator[bytes]:
        yield from elements
        sent.set()
        never.wait()

    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(CONNECT_DEADLINE_S)
        call: Any = channel.stream_unary(f"/foldlog.v1.SessionService/{method}")
        future = call.future(requests())
        sent.wait(CONNECT_DEADLINE_S)
    never.set()
    with contextlib.suppress(grpc.FutureCancelledError):
        assert future.exception(CONNECT_DEADLINE_S) is not None


def abandon_answer(address: str, method: str, request: bytes) -> None:
    """Send a request and drop the connection before its answer is read."""
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(CONNECT_DEADLINE_S)
        call: Any = channel.unary_unary(f"/foldlog.v1.SessionService/{method}")
        future = call.future(request)
    with contextlib.suppress(grpc.FutureCancelledError):
        future.exception(CONNECT_DEADLINE_S)
