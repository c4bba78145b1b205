"""The rows of the event table, as `eventsourcing` values with our columns added."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from eventsourcing.persistence import Notification, StoredEvent

DEFAULT_TENANT = "default"
AUDIT_SESSION = "foldlog:audit"  # in every tenant; only the service writes to it

# Stand for the tenant, topic and state of a row that is there and whose contents cannot be read.
NO_TENANT = ""
NO_TOPIC = ""
NO_STATE = b"\xff"


@dataclass(frozen=True)
class SessionStoredEvent(StoredEvent):
    """A row to write. `request_key` is unique in its session, or absent."""

    tenant: str = DEFAULT_TENANT
    request_key: bytes | None = None


@dataclass(frozen=True)
class SessionNotification(Notification):
    """A row read from the feed."""

    tenant: str = DEFAULT_TENANT


@dataclass(frozen=True)
class WholeRow(SessionNotification):
    """A row with every column of its table, as an audit reads it."""

    request_key: bytes | None = None


def row_id(stored: StoredEvent) -> UUID:
    """Return the row's aggregate id. Raises TypeError unless it is a UUID."""
    if not isinstance(stored.originator_id, UUID):
        raise TypeError(f"originator_id is to be a UUID, not {stored.originator_id!r}")
    return stored.originator_id


def row_tenant(stored: StoredEvent) -> str:
    """Return the row's tenant."""
    return stored.tenant if isinstance(stored, SessionStoredEvent) else DEFAULT_TENANT


def row_request_key(stored: StoredEvent) -> bytes | None:
    """Return the row's request key, if it has one."""
    return stored.request_key if isinstance(stored, SessionStoredEvent) else None
