"""Callers with keys: made on a server's database, and put into the calls of a channel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import grpc
from foldlog.application.keyring import new_key
from foldlog.core.role import Role
from foldlog.persistence.beside import open_beside
from foldlog.persistence.keys import KeyRow
from foldlog.settings import Settings
from foldlog.v1 import service_pb2_grpc

from tests.served import Served


class _Details(NamedTuple):
    method: str
    timeout: float | None
    metadata: Any
    credentials: Any
    wait_for_ready: Any
    compression: Any


class WithToken(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Sends a bearer token with every call."""

    def __init__(self, token: str) -> None:
        self._token = token

    def _pass(self, proceed: Callable[[Any, Any], Any], details: Any, request: Any) -> Any:
        header = ("authorization", f"Bearer {self._token}")
        metadata = [*(details.metadata or ()), header]
        rest = (details.credentials, details.wait_for_ready, details.compression)
        return proceed(_Details(details.method, details.timeout, metadata, *rest), request)

    intercept_unary_unary: Any = _pass
    intercept_unary_stream: Any = _pass
    intercept_stream_unary: Any = _pass
    intercept_stream_stream: Any = _pass


def make_key(
    database_url: str, role: Role = Role.ADMIN, tenant: str = "default", **labels: str
) -> str:
    """Make a key on a database that a server may be using."""
    key, row = new_key(tenant, role, labels)
    return insert(database_url, key.text, row)


def insert(database_url: str, text: str, row: KeyRow) -> str:
    """Write a key's row and return the key."""
    store = open_beside(Settings(database_url=database_url))
    try:
        store.keys.insert(row)
    finally:
        store.close()
    return text


def revoke_key(database_url: str, text: str) -> None:
    """Revoke a key."""
    store = open_beside(Settings(database_url=database_url))
    try:
        assert store.keys.revoke(text.split("_")[1], time.time_ns())
    finally:
        store.close()


def channel_of(served: Served, token: str) -> grpc.Channel:
    """Return a server's channel with a token in every call."""
    return grpc.intercept_channel(served.channel, WithToken(token))


def stub_of(served: Served, token: str) -> Any:
    """Return the stub of a server with a token in every call."""
    return service_pb2_grpc.SessionServiceStub(channel_of(served, token))


def caller(served: Served, role: Role = Role.ADMIN, tenant: str = "default", **labels: str) -> Any:
    """Make a key and return its stub."""
    return stub_of(served, make_key(served.database_url, role, tenant, **labels))
