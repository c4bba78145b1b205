"""Who a session is: its aggregate id, and ids the service makes."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID, uuid5

from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.rows import AUDIT_SESSION

NAMESPACE = UUID("5d0f6f2e-2f8c-5a59-9c4e-6f1f0a3c8f11")
DEFAULT_TENANT = "default"
IDS = 4_096  # how many ids are kept: each call needs its session's
SERVER_MADE = b"\xff"  # begins the key of a request id that the service made: it is in no text


def client_key(request_id: str) -> bytes:
    """Return the key of a request id that a client gave."""
    return request_id.encode()


def server_key(made_id: str) -> bytes:
    """Return the key of a request id that the service made."""
    return SERVER_MADE + made_id.encode()


def key_of(envelope: Envelope) -> bytes:
    """Return the key of the request whose first row an envelope is; empty for other rows."""
    return envelope.made_request_key or client_key(envelope.request_id)


@lru_cache(IDS)
def aggregate_id(tenant: str, session_id: str) -> UUID:
    """Return the aggregate id of a session: one tenant cannot name another's rows."""
    return uuid5(NAMESPACE, f"{len(tenant)}:{tenant}{session_id}")


def audit_id(tenant: str) -> UUID:
    """Return the aggregate id of a tenant's audit log."""
    return aggregate_id(tenant, AUDIT_SESSION)


def derived_session_id(tenant: str, scope: str, request_key: bytes) -> str:
    """Return the id of a session made without one: a retry of the request makes the same."""
    name = f"{len(tenant)}:{tenant}{len(scope)}:{scope}{request_key.hex()}"
    return uuid5(NAMESPACE, name).hex
