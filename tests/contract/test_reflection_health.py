"""Health, reflection, and a shutdown that drains."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.contract.calls import Calls
from tests.contract.refusal import refusal_of
from tests.contract.said import user
from tests.served import NotServingError, Served

SERVING = health_pb2.HealthCheckResponse.SERVING
SERVICE_NAME = "foldlog.v1.SessionService"


def test_the_server_and_the_service_are_serving(served: Served) -> None:
    health = health_pb2_grpc.HealthStub(served.channel)
    for service in ("", SERVICE_NAME):
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=10)
        assert answer.status == SERVING


def test_reflection_lists_the_service_and_gives_its_files(served: Served) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(served.channel)
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE_NAME),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="foldlog.v1.ErrorReason"),
    ]
    listed, files, _ = stub.ServerReflectionInfo(iter(requests), timeout=10)
    names = {each.name for each in listed.list_services_response.service}
    assert {SERVICE_NAME, "grpc.health.v1.Health"} <= names
    assert files.file_descriptor_response.file_descriptor_proto


def test_a_graceful_shutdown_ends_watches_and_exits_cleanly(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    log.append(user("a"))
    watches = [log.watch() for _ in range(3)]
    for watch in watches:
        assert next(watch).event.seq == 0
        assert next(watch).HasField("caught_up")
    assert served.terminate() == 0
    for watch in watches:
        error = _ended(watch)
        assert error is None or refusal_of(error).code == grpc.StatusCode.UNAVAILABLE


def _ended(watch: Any) -> grpc.RpcError | None:
    try:
        list(watch)
    except grpc.RpcError as error:
        return error
    return None


def test_a_graceful_shutdown_loses_nothing_that_was_acknowledged(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    acknowledged: queue.SimpleQueue[int] = queue.SimpleQueue()
    underway = threading.Event()

    failures: list[grpc.RpcError] = []

    def write() -> None:
        for i in range(10_000):
            try:
                acknowledged.put(log.append(user(str(i)), request_id=f"r{i}").first_seq)
            except grpc.RpcError as error:
                failures.append(error)
                return
            if i == 20:
                underway.set()

    writer = threading.Thread(target=write)
    writer.start()
    underway.wait(30)
    assert served.terminate() == 0
    writer.join(30)
    assert [each.code() for each in failures] == [grpc.StatusCode.UNAVAILABLE]
    served.start()
    seqs = {acknowledged.get() for _ in range(acknowledged.qsize())}
    assert seqs <= set(log.surface())


def test_a_second_server_on_the_same_address_says_so(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve()
    other = Served("sqlite:///:memory:", tmp_path)
    other.address = served.address
    with pytest.raises(NotServingError, match=served.address.rpartition(":")[2]):
        other.start()
    other.close()
