"""Calls that have one request: it is missing, it never comes, it does not decode."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from foldlog.v1 import service_pb2
from google.protobuf.descriptor import MethodDescriptor

from tests.contract.calls import DEADLINE_S
from tests.contract.refusal import refused
from tests.served import Served

SERVICE = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
SINGLE: list[MethodDescriptor] = [each for each in SERVICE.methods if not each.client_streaming]
PATHS = {
    **{each.name: f"/{SERVICE.full_name}/{each.name}" for each in SINGLE},
    "Check of health": "/grpc.health.v1.Health/Check",
    "Watch of health": "/grpc.health.v1.Health/Watch",
}


def answers(served: Served, path: str, requests: Iterator[bytes]) -> list[bytes]:
    """Make a call with any number of requests, whatever it is to have."""
    call: Any = served.channel.stream_stream(path)
    return list(call(requests, timeout=DEADLINE_S))


@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
def test_a_call_that_ends_without_its_request_is_refused(memory: Served, path: str) -> None:
    with refused("INVALID_FIELD") as told:
        answers(memory, path, iter(()))
    assert list(told.fields or ()) == ["request"]


@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
def test_a_request_that_does_not_decode_is_refused(memory: Served, path: str) -> None:
    with refused("INVALID_FIELD") as told:
        answers(memory, path, iter((b"\xff",)))
    assert list(told.fields or ()) == ["request"]


def test_a_request_that_does_not_come_is_not_waited_for(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-memory", FOLDLOG_REQUEST_TIMEOUT_S="0.2")
    is_refused = threading.Event()

    def late() -> Iterator[bytes]:
        is_refused.wait(DEADLINE_S)
        yield b""

    with refused("INVALID_FIELD") as told:
        answers(served, PATHS["GetSession"], late())
    is_refused.set()
    assert list(told.fields or ()) == ["request"]
    assert "within 0.2 s" in told.message
