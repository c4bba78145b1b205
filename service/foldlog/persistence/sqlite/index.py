"""The session index on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any
from uuid import UUID

from eventsourcing.persistence import IntegrityError, Tracking
from eventsourcing.sqlite import SQLiteCursor, SQLiteTrackingRecorder

from foldlog.persistence.columns import id_of
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
from foldlog.persistence.quotas import counted
from foldlog.persistence.sqlite.connections import SQLiteConnections
from foldlog.persistence.sqlite.ledger import move_on
from foldlog.persistence.terms import Source

TRACK = (
    "INSERT INTO foldlog_tracking (application_name, notification_id) VALUES (?1, ?2)"
    " ON CONFLICT (application_name) DO UPDATE SET notification_id = ?2 WHERE notification_id < ?2"
)
TRACK_FIRST = TRACK.replace("notification_id < ?2", "notification_id = 0")
TRACK_FROM = (
    "UPDATE foldlog_tracking SET notification_id = ?2"
    " WHERE application_name = ?1 AND notification_id = ?3 AND notification_id < ?2"
)
FORGET_PLACE = "DELETE FROM foldlog_tracking WHERE application_name = ?"
TRACKED = "SELECT notification_id FROM foldlog_tracking WHERE application_name = %s"
INSERT_SESSION = (
    "INSERT INTO foldlog_sessions (tenant, aggregate_id, session_id, parent_session_id,"
    " parent_at_seq, labels, metadata_json, next_seq, create_s, create_ns, update_s, update_ns)"
    " VALUES (?,?,?,?,?,?,?,0,?,?,?,?) ON CONFLICT DO NOTHING"
)
UPDATE_SESSION = (
    "UPDATE foldlog_sessions SET labels = coalesce(?, labels),"
    " metadata_json = coalesce(?, metadata_json), next_seq = coalesce(?, next_seq),"
    " update_s = coalesce(?, update_s), update_ns = coalesce(?, update_ns),"
    " deleted = deleted OR ? WHERE aggregate_id = ?"
)
DELETE_TERMS = "DELETE FROM foldlog_session_terms WHERE aggregate_id = ?"
DELETE_LABELS = f"{DELETE_TERMS} AND source = {int(Source.LABEL)}"
INSERT_TERM = (
    "INSERT INTO foldlog_session_terms (tenant, aggregate_id, source, term, create_s, create_ns)"
    " SELECT tenant, aggregate_id, ?, ?, create_s, create_ns FROM foldlog_sessions"
    " WHERE aggregate_id = ? AND NOT deleted ON CONFLICT DO NOTHING"
)
INSERT_LINEAGE = (
    "INSERT INTO foldlog_lineage (aggregate_id, ancestor_id, to_version) VALUES (?,?,?)"
    " ON CONFLICT DO NOTHING"
)
INSERT_ERASURE = (
    "INSERT INTO foldlog_erasures (tenant, aggregate_id) VALUES (?,?) ON CONFLICT DO NOTHING"
)
FIND = f"SELECT {COLUMNS} FROM foldlog_sessions s WHERE s.aggregate_id = %s AND NOT s.deleted"
FORKS = (
    "SELECT l.aggregate_id, s.session_id, l.to_version FROM foldlog_lineage l"
    " JOIN foldlog_sessions s USING (aggregate_id) WHERE l.ancestor_id = %s AND NOT s.deleted"
    " ORDER BY l.aggregate_id"
)


class SQLiteSessionIndex(SQLiteTrackingRecorder, SessionIndex):
    """Keeps the index beside the events."""

    datastore: SQLiteConnections

    def construct_create_table_statements(self) -> list[str]:
        """Return nothing: the migrations make the tables."""
        return []

    def insert_tracking(self, tracking: Tracking) -> None:
        with self.datastore.transaction(commit=True) as cursor:
            self._insert_tracking(cursor, tracking)

    def _insert_tracking(self, c: SQLiteCursor, tracking: Tracking) -> None:
        connection = c.sqlite_cursor.connection
        track(connection, tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        rows = self.datastore.rows(TRACKED, [application_name])
        return rows[0][0] if rows else None

    def apply(
        self, changes: Sequence[IndexChange], tracking: Tracking, after_id: int | None = None
    ) -> None:
        with self.datastore.writer() as connection:
            track(connection, tracking, after_id)
            _write(connection, changes)
            for sql, used in counted(uses_of(changes)):
                connection.execute(sql.replace("%s", "?"), used)

    def rebuild(self, stretches: Callable[[], Iterable[Sequence[IndexChange]]], place: int) -> None:
        with self.datastore.writer() as connection:
            connection.execute(FORGET_PLACE, (INDEX_NAME,))
            track(connection, Tracking(INDEX_NAME, place))
            for table in TABLES:
                connection.execute(f"DELETE FROM foldlog_{table}")
            for changes in stretches():
                _write(connection, changes)

    def list_sessions(self, query: IndexQuery) -> IndexPage:
        sql, parameters = listing(query, _key)
        return page(query, [_row(*each) for each in self.datastore.rows(sql, parameters)])

    def entry(self, aggregate_id: UUID) -> IndexEntry | None:
        return read_entry(lambda query: self.datastore.rows(*query), _key(aggregate_id), id_of)

    def find_session(self, aggregate_id: UUID) -> IndexRow | None:
        rows = self.datastore.rows(FIND, [_key(aggregate_id)])
        return _row(*rows[0]) if rows else None

    def forks_reading(self, aggregate_id: UUID) -> list[tuple[UUID, str, int]]:
        rows = self.datastore.rows(FORKS, [_key(aggregate_id)])
        return [(id_of(key), session_id, to) for key, session_id, to in rows]

    def list_unresolved(self, query: CallQuery) -> list[UnresolvedCall]:
        rows = self.datastore.rows(*call_listing(query, _key))
        return [unresolved_call(each, id_of) for each in rows]


def track(connection: Connection, tracking: Tracking, after_id: int | None = None) -> None:
    place = (tracking.application_name, tracking.notification_id)
    if after_id:
        moved = connection.execute(TRACK_FROM, (*place, after_id))
    else:  # where nothing was applied yet, there may be no row
        moved = connection.execute(TRACK if after_id is None else TRACK_FIRST, place)
    if moved.rowcount != 1:
        raise IntegrityError(f"the position of {tracking} does not grow")


def _write(connection: Connection, changes: Sequence[IndexChange]) -> None:
    rows = writes(changes)
    for sql, parameters in _statements(rows):
        connection.executemany(sql, parameters)
    move_on(connection, calls_of(changes), rows.stripped)


def _statements(rows: Writes) -> Iterator[tuple[str, Sequence[Sequence[object]]]]:
    yield INSERT_SESSION, [(tenant, _key(key), *rest) for tenant, key, *rest in rows.sessions]
    yield UPDATE_SESSION, [(*rest, _key(key)) for *rest, key in rows.updates]
    yield DELETE_TERMS, [(_key(key),) for key in rows.stripped]
    yield DELETE_LABELS, [(_key(key),) for key in rows.unlabelled]
    yield INSERT_TERM, [(*rest, _key(key)) for *rest, key in rows.terms]
    yield INSERT_LINEAGE, [(_key(key), _key(of), to) for key, of, to in rows.lineage]
    yield INSERT_ERASURE, [(tenant, _key(key)) for tenant, key in rows.erasing]


def _key(aggregate_id: UUID) -> bytes:
    return aggregate_id.bytes


def _row(key: Any, *columns: Any) -> IndexRow:
    return row(id_of(key), columns)
