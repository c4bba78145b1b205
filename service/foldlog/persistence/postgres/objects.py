"""The tables of attachments on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from eventsourcing.persistence import Tracking

from foldlog.persistence.object_table import ObjectTable, ReferenceChanges
from foldlog.persistence.postgres.connections import PostgresConnections
from foldlog.persistence.postgres.index import track
from foldlog.persistence.queries import Query

INSERT = """
    INSERT INTO foldlog_object_references (tenant, sha256, aggregate_id, version, seq, dropped)
    SELECT * FROM unnest(%s::text[], %s::bytea[], %s::uuid[], %s::bigint[], %s::bigint[],
        %s::bool[])
    ON CONFLICT DO NOTHING
"""
DROP = """
    UPDATE foldlog_object_references r SET dropped = true
    FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[]) AS n (id, first, last)
    WHERE r.aggregate_id = n.id AND r.seq BETWEEN n.first AND n.last
"""


class PostgresObjectTable(ObjectTable):
    """Keeps the tables beside the events."""

    same = "IS NOT DISTINCT FROM"

    def __init__(self, datastore: PostgresConnections) -> None:
        self.datastore = datastore

    def apply_references(self, changes: ReferenceChanges, tracking: Tracking) -> None:
        with self.datastore.writing() as connection:
            track(connection, tracking)
            for query in _statements(changes):
                connection.execute(*query)

    def _rows(self, query: Query) -> list[tuple[Any, ...]]:
        return self.datastore.rows(query)

    def _write(self, statements: Iterable[Query]) -> list[int]:
        with self.datastore.writing() as connection:
            return [connection.execute(*query).rowcount for query in statements]

    def _key(self, aggregate_id: UUID) -> object:
        return aggregate_id

    def _id(self, key: Any) -> UUID:
        return UUID(str(key))


def _statements(changes: ReferenceChanges) -> Iterator[Query]:
    for sql, values in ((INSERT, changes.added), (DROP, changes.dropped)):
        if values:
            yield sql, [list(column) for column in zip(*values, strict=True)]
