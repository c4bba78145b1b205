"""Doctor's look at a running service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from foldlog.cli.doctor.finding import Finding, fault, note, ok, warning

if TYPE_CHECKING:
    from grpc import Channel

ANSWER_TIMEOUT_S = 3.0


def service(address: str) -> Iterator[Finding]:
    """Ask the service at an address for its health."""
    from grpc_health.v1 import health_pb2

    from foldlog._grpc import grpc

    with _channel(address) as channel:
        ask = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = ask(health_pb2.HealthCheckRequest(), timeout=ANSWER_TIMEOUT_S)
        except grpc.RpcError as error:
            yield _failed(address, error.code())
            return
    if answer.status == health_pb2.HealthCheckResponse.SERVING:
        yield ok("service", f"serving at {address}")
        return
    status = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    yield fault(
        "service",
        f"{address} answers {status}",
        "It stops, or cannot use its database.",
        "Look at its log.",
    )


def _channel(address: str) -> Channel:
    from foldlog._grpc import grpc
    from foldlog.client.tls import Tls

    tls = Tls.from_environment()
    if tls is None:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, tls.credentials(), tls.options())


def _failed(address: str, code: object) -> Finding:
    from foldlog._grpc import grpc

    if code is grpc.StatusCode.UNAVAILABLE:
        return note("service", f"nothing serves at {address}", fix="Start it with: foldlog serve")
    return warning(
        "service",
        f"{address} answers {getattr(code, 'name', code)} when asked for its health",
        "It may be another program, or overloaded.",
        "Name Foldlog's address with --address.",
    )
