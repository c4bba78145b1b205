"""The tables of attachments on SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from typing import Any
from uuid import UUID

from eventsourcing.persistence import Tracking

from foldlog.persistence.columns import id_of
from foldlog.persistence.object_table import ObjectTable, ReferenceChanges
from foldlog.persistence.queries import Query
from foldlog.persistence.sqlite.connections import SQLiteConnections
from foldlog.persistence.sqlite.index import track

INSERT = (
    "INSERT INTO foldlog_object_references (tenant, sha256, aggregate_id, version, seq, dropped)"
    " VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING"
)
DROP = (
    "UPDATE foldlog_object_references SET dropped = 1"
    " WHERE aggregate_id = ? AND seq BETWEEN ? AND ?"
)


class SQLiteObjectTable(ObjectTable):
    """Keeps the tables beside the events."""

    same = "IS"

    def __init__(self, datastore: SQLiteConnections) -> None:
        self.datastore = datastore

    def apply_references(self, changes: ReferenceChanges, tracking: Tracking) -> None:
        with self.datastore.writer() as connection:
            track(connection, tracking)
            for sql, parameters in _statements(changes):
                connection.executemany(sql, parameters)

    def _rows(self, query: Query) -> list[tuple[Any, ...]]:
        return self.datastore.rows(*query)

    def _write(self, statements: Iterable[Query]) -> list[int]:
        with self.datastore.writer() as connection:
            return [_changed(connection, query) for query in statements]

    def _key(self, aggregate_id: UUID) -> object:
        return aggregate_id.bytes

    def _id(self, key: Any) -> UUID:
        return id_of(key)


def _changed(connection: Connection, query: Query) -> int:
    sql, parameters = query
    return connection.execute(sql.replace("%s", "?"), parameters).rowcount


def _statements(changes: ReferenceChanges) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    yield (
        INSERT,
        [(each.tenant, each.sha256, each.aggregate_id.bytes, *each[3:]) for each in changes.added],
    )
    yield DROP, [(each.aggregate_id.bytes, each.first, each.last) for each in changes.dropped]
