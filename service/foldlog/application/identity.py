"""Who a session is: its aggregate id, and ids the service makes."""

from __future__ import annotations

from uuid import UUID, uuid5

NAMESPACE = UUID("5d0f6f2e-2f8c-5a59-9c4e-6f1f0a3c8f11")
DEFAULT_TENANT = "default"
SERVER_MADE = "\0"  # begins a request id that the service made: a client's has no NUL


def shown_request_id(request_id: str) -> str:
    """Return a request id as callers see it: none where the service made it."""
    return "" if request_id.startswith(SERVER_MADE) else request_id


def aggregate_id(tenant: str, session_id: str) -> UUID:
    """Return the aggregate id of a session: one tenant cannot name another's rows."""
    return uuid5(NAMESPACE, f"{len(tenant)}:{tenant}{session_id}")


def derived_session_id(tenant: str, scope: str, request_id: str) -> str:
    """Return the id of a session made without one: a retry of the request makes the same."""
    return uuid5(NAMESPACE, f"{len(tenant)}:{tenant}{len(scope)}:{scope}{request_id}").hex
