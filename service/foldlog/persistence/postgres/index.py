"""The session index on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

import psycopg
from eventsourcing.persistence import IntegrityError, Tracking
from eventsourcing.postgres import PostgresTrackingRecorder

from foldlog.persistence.entries import IndexEntry, read_entry
from foldlog.persistence.index import (
    INDEX_NAME,
    TABLES,
    IndexChange,
    IndexPage,
    IndexQuery,
    IndexRow,
    SessionIndex,
)
from foldlog.persistence.indexing import Writes, calls_of, uses_of, writes
from foldlog.persistence.ledger import CallQuery, UnresolvedCall, unresolved_call
from foldlog.persistence.ledger import listing as call_listing
from foldlog.persistence.listing import COLUMNS, listing, page, row
from foldlog.persistence.postgres.connections import PostgresConnections
from foldlog.persistence.postgres.ledger import move_on
from foldlog.persistence.quotas import counted
from foldlog.persistence.terms import Source

TRACK = """
    INSERT INTO foldlog_tracking AS t (application_name, notification_id) VALUES (%s, %s)
    ON CONFLICT (application_name) DO UPDATE SET notification_id = excluded.notification_id
    WHERE t.notification_id < excluded.notification_id
"""
TRACK_FIRST = TRACK.replace("< excluded.notification_id", "= 0")
TRACK_FROM = """
    UPDATE foldlog_tracking SET notification_id = %s
    WHERE application_name = %s AND notification_id = %s AND notification_id < %s
"""
# Takes the row's lock, so that nobody moves the index on meanwhile.
HOLD = """
    INSERT INTO foldlog_tracking (application_name, notification_id) VALUES (%s, %s)
    ON CONFLICT (application_name) DO UPDATE SET notification_id = excluded.notification_id
"""
TRACKED = "SELECT notification_id FROM foldlog_tracking WHERE application_name = %s"
INSERT_SESSIONS = """
    INSERT INTO foldlog_sessions (tenant, aggregate_id, session_id, parent_session_id,
        parent_at_seq, labels, metadata_json, next_seq, create_s, create_ns, update_s, update_ns)
    SELECT n.tenant, n.id, n.session_id, n.parent, n.at_seq, n.labels, n.metadata, 0,
        n.create_s, n.create_ns, n.update_s, n.update_ns
    FROM unnest(%s::text[], %s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::text[],
        %s::text[], %s::bigint[], %s::int[], %s::bigint[], %s::int[])
        AS n (tenant, id, session_id, parent, at_seq, labels, metadata, create_s, create_ns,
              update_s, update_ns)
    ON CONFLICT DO NOTHING
"""
UPDATE_SESSIONS = """
    UPDATE foldlog_sessions s SET labels = coalesce(n.labels, s.labels),
        metadata_json = coalesce(n.metadata, s.metadata_json),
        next_seq = coalesce(n.next_seq, s.next_seq),
        update_s = coalesce(n.update_s, s.update_s), update_ns = coalesce(n.update_ns, s.update_ns),
        deleted = s.deleted OR n.deleted
    FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::int[], %s::bool[],
        %s::uuid[]) AS n (labels, metadata, next_seq, update_s, update_ns, deleted, id)
    WHERE s.aggregate_id = n.id
"""
DELETE_TERMS = "DELETE FROM foldlog_session_terms WHERE aggregate_id = ANY(%s::uuid[])"
DELETE_LABELS = f"{DELETE_TERMS} AND source = {int(Source.LABEL)}"
INSERT_TERMS = """
    INSERT INTO foldlog_session_terms (tenant, aggregate_id, source, term, create_s, create_ns)
    SELECT s.tenant, s.aggregate_id, n.source, n.term, s.create_s, s.create_ns
    FROM unnest(%s::smallint[], %s::bytea[], %s::uuid[]) AS n (source, term, id)
    JOIN foldlog_sessions s ON s.aggregate_id = n.id AND NOT s.deleted
    ON CONFLICT DO NOTHING
"""
INSERT_LINEAGE = """
    INSERT INTO foldlog_lineage (aggregate_id, ancestor_id, to_version)
    SELECT n.id, n.ancestor, n.to_version
    FROM unnest(%s::uuid[], %s::uuid[], %s::bigint[]) AS n (id, ancestor, to_version)
    ON CONFLICT DO NOTHING
"""
INSERT_ERASURES = """
    INSERT INTO foldlog_erasures (tenant, aggregate_id)
    SELECT * FROM unnest(%s::text[], %s::uuid[]) ON CONFLICT DO NOTHING
"""
FIND = f"SELECT {COLUMNS} FROM foldlog_sessions s WHERE s.aggregate_id = %s AND NOT s.deleted"
FORKS = """
    SELECT l.aggregate_id, s.session_id, l.to_version FROM foldlog_lineage l
    JOIN foldlog_sessions s USING (aggregate_id) WHERE l.ancestor_id = %s AND NOT s.deleted
    ORDER BY l.aggregate_id
"""


Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresSessionIndex(PostgresTrackingRecorder, SessionIndex):
    """Keeps the index beside the events."""

    datastore: PostgresConnections

    def __init__(self, datastore: PostgresConnections) -> None:
        super().__init__(datastore, tracking_table_name="foldlog_tracking")
        # The migrations make the tables.
        self.sql_create_statements = []

    def insert_tracking(self, tracking: Tracking) -> None:
        with self.datastore.writing() as connection:
            track(connection, tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        rows = self.datastore.rows((TRACKED, [application_name]))
        return rows[0][0] if rows else None

    def has_tracking_id(self, application_name: str, notification_id: int | None) -> bool:
        return SessionIndex.has_tracking_id(self, application_name, notification_id)

    def apply(
        self, changes: Sequence[IndexChange], tracking: Tracking, after_id: int | None = None
    ) -> None:
        with self.datastore.writing() as connection:
            # Takes the row's lock, so that two processes apply one after the other.
            track(connection, tracking, after_id)
            _write(connection, changes)
            for query in counted(uses_of(changes)):
                connection.execute(*query)

    def rebuild(self, stretches: Callable[[], Iterable[Sequence[IndexChange]]], place: int) -> None:
        with self.datastore.writing() as connection:
            connection.execute(HOLD, [INDEX_NAME, place])
            for table in TABLES:
                connection.execute(f"DELETE FROM foldlog_{table}")
            for changes in stretches():
                _write(connection, changes)

    def list_sessions(self, query: IndexQuery) -> IndexPage:
        rows = self.datastore.rows(listing(query, lambda aggregate_id: aggregate_id))
        return page(query, [_row(*each) for each in rows])

    def entry(self, aggregate_id: UUID) -> IndexEntry | None:
        return read_entry(self.datastore.rows, aggregate_id, lambda key: UUID(int=key.int))

    def find_session(self, aggregate_id: UUID) -> IndexRow | None:
        rows = self.datastore.rows((FIND, [aggregate_id]))
        return _row(*rows[0]) if rows else None

    def forks_reading(self, aggregate_id: UUID) -> list[tuple[UUID, str, int]]:
        rows = self.datastore.rows((FORKS, [aggregate_id]))
        return [(key, session_id, to) for key, session_id, to in rows]

    def list_unresolved(self, query: CallQuery) -> list[UnresolvedCall]:
        rows = self.datastore.rows(call_listing(query, lambda key: key))
        return [unresolved_call(each, lambda key: key) for each in rows]


def track(connection: Connection, tracking: Tracking, after_id: int | None = None) -> None:
    name, place = tracking.application_name, tracking.notification_id
    if after_id:
        moved = connection.execute(TRACK_FROM, [place, name, after_id, place])
    else:  # where nothing was applied yet, there may be no row
        moved = connection.execute(TRACK if after_id is None else TRACK_FIRST, [name, place])
    if moved.rowcount != 1:
        raise IntegrityError(f"the position of {tracking} does not grow")


def _write(connection: Connection, changes: Sequence[IndexChange]) -> None:
    rows = writes(changes)
    for sql, columns in _statements(rows):
        connection.execute(sql, columns)
    move_on(connection, calls_of(changes), rows.stripped)


def _statements(rows: Writes) -> Iterator[tuple[str, list[list[object]]]]:
    """Yield the statements that have rows, with a list per column."""
    for sql, values in (
        (INSERT_SESSIONS, rows.sessions),
        (UPDATE_SESSIONS, rows.updates),
        (DELETE_TERMS, [(key,) for key in rows.stripped]),
        (DELETE_LABELS, [(key,) for key in rows.unlabelled]),
        (INSERT_TERMS, rows.terms),
        (INSERT_LINEAGE, rows.lineage),
        (INSERT_ERASURES, rows.erasing),
    ):
        if values:
            yield sql, [list(column) for column in zip(*values, strict=True)]


def _row(key: UUID, *columns: Any) -> IndexRow:
    return row(key, columns)
