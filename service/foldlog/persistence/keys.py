"""The table of API keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foldlog.persistence.columns import labels_of
from foldlog.persistence.queries import Query
from foldlog.persistence.statements import Statements

COLUMNS = "key_id, tenant, role, labels, name, secret_sha256, created_ns, expires_ns, revoked_ns"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as it is stored. Times are nanoseconds since 1970; the secret itself is nowhere."""

    key_id: str
    tenant: str
    role: str
    secret_sha256: bytes = field(repr=False)
    created_ns: int
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    expires_ns: int | None = None
    revoked_ns: int | None = None


class KeyTable:
    """Reads and writes keys."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def find(self, key_id: str) -> KeyRow | None:
        """Return a key, revoked and expired ones too."""
        rows = self._statements.rows((f"{_SELECT} WHERE key_id = %s", [key_id]))
        return _row(rows[0]) if rows else None

    def all(self, tenant: str | None = None) -> list[KeyRow]:
        """Return every key, or a tenant's, the oldest first."""
        where, parameters = ("", list[object]()) if tenant is None else _of(tenant)
        query = (f"{_SELECT}{where} ORDER BY created_ns, key_id", parameters)
        return [_row(row) for row in self._statements.rows(query)]

    def insert(self, key: KeyRow) -> None:
        """Write a new key."""
        marks = ", ".join(["%s"] * 9)
        self._statements.write(
            [(f"INSERT INTO foldlog_keys ({COLUMNS}) VALUES ({marks})", _values(key))]
        )

    def revoke(self, key_id: str, now_ns: int) -> bool:
        """Revoke a key; tell whether there is one that was not revoked."""
        sql = "UPDATE foldlog_keys SET revoked_ns = %s WHERE key_id = %s AND revoked_ns IS NULL"
        return self._statements.write([(sql, [now_ns, key_id])]) == [1]


_SELECT = f"SELECT {COLUMNS} FROM foldlog_keys"


def _of(tenant: str) -> Query:
    return " WHERE tenant = %s", [tenant]


def _values(key: KeyRow) -> list[object]:
    labels = json.dumps(dict(key.labels), ensure_ascii=True, sort_keys=True)
    who = [key.key_id, key.tenant, key.role, labels, key.name, key.secret_sha256]
    return [*who, key.created_ns, key.expires_ns, key.revoked_ns]


def _row(row: tuple[Any, ...]) -> KeyRow:
    key_id, tenant, role, labels, name, digest, created_ns, expires_ns, revoked_ns = row
    return KeyRow(
        key_id,
        tenant,
        role,
        bytes(digest),
        created_ns,
        labels_of(labels),
        name,
        expires_ns,
        revoked_ns,
    )
