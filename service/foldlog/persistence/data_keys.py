"""The table of sessions' data keys, each wrapped by a master key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from foldlog.persistence.columns import id_of
from foldlog.persistence.queries import Query, distinct_values
from foldlog.persistence.statements import Statements

KEYS_AT_ONCE = 500


class DataKeyRow(NamedTuple):
    """A session's data key, wrapped by the master key that `key_id` names."""

    tenant: str
    aggregate_id: UUID
    key_id: str
    wrapped: bytes


class DataKeyTable:
    """Reads and writes wrapped data keys. Methods block, and any thread may call them.

    `key` returns an aggregate id as the database takes it.
    """

    def __init__(
        self,
        statements: Statements,
        key: Callable[[UUID], object],
        on_deleted: Callable[[UUID], None] = lambda _: None,
    ) -> None:
        self._statements = statements
        self._key = key
        self._on_deleted = on_deleted

    def telling(self, on_deleted: Callable[[UUID], None]) -> DataKeyTable:
        """Return the same table as one that tells of keys that it deletes."""
        return DataKeyTable(self._statements, self._key, on_deleted)

    def _rows(self, query: Query) -> list[tuple[Any, ...]]:
        return self._statements.rows(query)

    def _write(self, query: Query) -> int:
        return self._statements.write([query])[0]

    def find(self, aggregate_ids: Collection[UUID]) -> list[DataKeyRow]:
        """Return the keys of these sessions, those that exist."""
        wanted = [self._key(each) for each in aggregate_ids]
        found: list[DataKeyRow] = []
        for start in range(0, len(wanted), KEYS_AT_ONCE):
            part = wanted[start : start + KEYS_AT_ONCE]
            sql = (
                "SELECT tenant, aggregate_id, key_id, wrapped FROM foldlog_session_keys"
                f" WHERE aggregate_id IN ({', '.join(['%s'] * len(part))})"
            )
            found += map(self._row, self._rows((sql, part)))
        return found

    def insert(self, rows: Sequence[DataKeyRow]) -> int:
        """Write keys of sessions that have none, and return of how many."""
        sql = (
            "INSERT INTO foldlog_session_keys (tenant, aggregate_id, key_id, wrapped) VALUES"
            f" {', '.join(['(%s, %s, %s, %s)'] * len(rows))} ON CONFLICT DO NOTHING"
        )
        values = [v for row in rows for v in (row.tenant, self._key(row.aggregate_id), *row[2:])]
        return self._write((sql, values)) if rows else 0

    def delete(self, aggregate_id: UUID) -> None:
        """Destroy a session's key."""
        sql = "DELETE FROM foldlog_session_keys WHERE aggregate_id = %s"
        self._write((sql, [self._key(aggregate_id)]))
        self._on_deleted(aggregate_id)

    def replace(self, old: DataKeyRow, new: DataKeyRow) -> bool:
        """Wrap a key anew, unless another was faster."""
        sql = (
            "UPDATE foldlog_session_keys SET key_id = %s, wrapped = %s"
            " WHERE aggregate_id = %s AND wrapped = %s"
        )
        values = [new.key_id, new.wrapped, self._key(old.aggregate_id), old.wrapped]
        return self._write((sql, values)) == 1

    def wrapped_by(self, key_id: str, after: UUID, limit: int) -> list[DataKeyRow]:
        """Return a page of the keys that a master key wraps, in the order of their sessions."""
        sql = (
            "SELECT tenant, aggregate_id, key_id, wrapped FROM foldlog_session_keys"
            " WHERE key_id = %s AND aggregate_id > %s ORDER BY aggregate_id LIMIT %s"
        )
        parameters = [key_id, self._key(after), limit]
        return [self._row(each) for each in self._rows((sql, parameters))]

    def count(self, key_id: str) -> int:
        """Return how many sessions' keys a master key wraps."""
        sql = "SELECT count(*) FROM foldlog_session_keys WHERE key_id = %s"
        return int(self._rows((sql, [key_id]))[0][0])

    def key_ids(self) -> list[str]:
        """Return the master keys that wrap any. Costs a look-up for each."""
        return distinct_values(self._rows, "foldlog_session_keys", "key_id")

    def _row(self, columns: tuple[Any, ...]) -> DataKeyRow:
        tenant, key, key_id, wrapped = columns
        id_ = key if isinstance(key, UUID) else id_of(key)
        # What is no key does not unwrap: told to those who need it, not to all who read.
        is_key = isinstance(wrapped, bytes)
        return DataKeyRow(str(tenant), id_, str(key_id), wrapped if is_key else b"")
