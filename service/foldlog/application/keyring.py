"""Making and ending API keys. Blocking: for whoever has the database at hand."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping

from foldlog.core.errors import InvalidFieldError
from foldlog.core.key import ID_BYTES, SECRET_BYTES, ApiKey
from foldlog.core.role import Role
from foldlog.core.validation import validate_labels, validate_name, validate_tenant
from foldlog.persistence.keys import KeyRow, KeyTable
from foldlog.settings import Limits


def new_key(
    tenant: str,
    role: Role,
    labels: Mapping[str, str],
    name: str = "",
    expires_ns: int | None = None,
) -> tuple[ApiKey, KeyRow]:
    """Return a new key and its row. Raises InvalidFieldError, and TooLargeError for labels."""
    validate_tenant(tenant)
    validate_name(name, "name")
    validate_labels(labels, Limits().labels, Limits().label_bytes)
    now_ns = time.time_ns()
    if expires_ns is not None and expires_ns <= now_ns:
        raise InvalidFieldError.of("expires", "it has passed")
    key = ApiKey(secrets.token_hex(ID_BYTES), secrets.token_bytes(SECRET_BYTES))
    row = KeyRow(key.key_id, tenant, role.label, key.digest, now_ns, dict(labels), name, expires_ns)
    return key, row


def revocable(table: KeyTable, key_id: str) -> KeyRow:
    """Return a key that can be revoked.

    Raises InvalidFieldError if there is none, or if it is revoked.
    """
    row = table.find(key_id)
    if row is None:
        raise InvalidFieldError.of("id", f"there is no key {key_id}")
    if row.revoked_ns is not None:
        raise InvalidFieldError.of("id", f"key {key_id} is revoked already")
    return row


def revoke(table: KeyTable, row: KeyRow) -> None:
    """Revoke a key; one that somebody else has just revoked stays so."""
    table.revoke(row.key_id, time.time_ns())
