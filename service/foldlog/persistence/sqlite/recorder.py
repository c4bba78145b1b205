"""The event recorder on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, IntegrityError, StoredEvent, Subscription
from eventsourcing.sqlite import SQLiteApplicationRecorder

from foldlog.persistence import queries
from foldlog.persistence.columns import id_of
from foldlog.persistence.errors import DuplicateRowError, StoreDamagedError
from foldlog.persistence.hints import Hints
from foldlog.persistence.reading import FeedReader
from foldlog.persistence.recorder import SessionRecorder, counted
from foldlog.persistence.rows import (
    NO_TENANT,
    NO_TOPIC,
    SessionNotification,
    WholeRow,
    row_id,
    row_request_key,
    row_tenant,
)
from foldlog.persistence.sqlite import damage
from foldlog.persistence.sqlite.connections import SQLiteConnections
from foldlog.persistence.subscription import SessionSubscription

Parameters = tuple[str, bytes, int, str, bytes, bytes | None]
INSERT = (
    "INSERT INTO foldlog_events"
    " (tenant, originator_id, originator_version, topic, state, request_key) VALUES (?,?,?,?,?,?)"
)
UPDATE = "UPDATE foldlog_events SET state = ? WHERE originator_id = ? AND originator_version = ?"
EXISTS = "SELECT 1 FROM foldlog_events WHERE originator_id = ? AND originator_version = ?"


# The package's class says that there always is a highest notification id; its own contract, and
# what it returns from an empty table, is None.
class SQLiteSessionRecorder(  # type: ignore[misc]
    FeedReader, SQLiteApplicationRecorder, SessionRecorder
):
    """Writes in one transaction each; notification ids are dense."""

    datastore: SQLiteConnections

    def __init__(self, datastore: SQLiteConnections) -> None:
        super().__init__(datastore, events_table_name="foldlog_events")
        self._hints = Hints()

    def construct_create_table_statements(self) -> list[str]:
        """Return nothing: the migrations make the tables."""
        return []

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        if not stored_events:
            return []
        with self.datastore.writer() as connection:
            _insert(connection, stored_events)
            last = _last_id(connection)
        return range(last - len(stored_events) + 1, last + 1)

    def is_held(self, stored_event: StoredEvent) -> bool:
        # Whoever is answered knows what became of the write.
        return False

    def insert_chunks(self, chunks: Iterable[Sequence[StoredEvent]]) -> int:
        is_empty = True
        with self.datastore.writer() as connection:
            for chunk in counted(chunks):
                _insert(connection, chunk)
                is_empty &= not chunk
            return 0 if is_empty else _last_id(connection)

    def replace_states(self, originator_id: UUID, states: Sequence[tuple[int, bytes]]) -> None:
        with self.datastore.writer() as connection:
            before = connection.total_changes
            connection.executemany(
                UPDATE, [(state, originator_id.bytes, version) for version, state in states]
            )
            if connection.total_changes - before != len(states):
                raise IntegrityError(f"a row of {originator_id} to replace is missing")

    # Each of these reads on around damaged pages.

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[StoredEvent]:
        try:
            return super().select_events(
                originator_id, gt=gt, lte=lte, desc=desc, limit=limit, max_bytes=max_bytes
            )
        except StoreDamagedError:
            id_ = cast("UUID", originator_id)
            wanted = damage.versions(self._rows, id_.bytes, gt, lte, desc, limit)
            return [*damage.events(self._rows, id_, wanted, max_bytes)]

    def select_whole(self, originator_id: UUID, gt: int, max_bytes: int) -> list[WholeRow]:
        try:
            return super().select_whole(originator_id, gt, max_bytes)
        except StoreDamagedError:
            key = originator_id.bytes
            wanted = damage.versions(self._rows, key, gt, None, False, damage.FEW)
            return [*damage.whole(self._rows, originator_id, wanted)]

    def select_versions(self, originator_id: UUID, versions: Sequence[int]) -> list[StoredEvent]:
        try:
            return super().select_versions(originator_id, versions)
        except StoreDamagedError:
            return [*damage.events(self._rows, originator_id, sorted(set(versions)))]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
        max_bytes: int | None = None,
    ) -> list[SessionNotification]:
        try:
            return super().select_notifications(
                start,
                limit,
                stop,
                topics,
                inclusive_of_start=inclusive_of_start,
                max_bytes=max_bytes,
            )
        except StoreDamagedError:
            after = (start or 0) - (inclusive_of_start and start is not None)
            wanted = damage.places(self._rows, after, stop, limit if max_bytes is None else 1)
            found = damage.notifications(self._rows, wanted)
            return [each for each in found if not topics or each.topic in (NO_TOPIC, *topics)]

    def select_tenant_notifications(
        self, tenant: str, after_id: int, limit: int, max_bytes: int
    ) -> tuple[list[SessionNotification], int]:
        try:
            return super().select_tenant_notifications(tenant, after_id, limit, max_bytes)
        except StoreDamagedError:
            wanted = damage.places(self._rows, after_id, None, 1)
            found = [*damage.notifications(self._rows, wanted)]
            if any(each.tenant == NO_TENANT for each in found):
                raise StoreDamagedError("whose a lost row is cannot be told") from None
            own = [each for each in found if each.tenant == tenant]
            return own, wanted[-1][0] if wanted else after_id

    def count_tenant_rows(self, tenant: str, after_id: int, most: int) -> int:
        try:
            return super().count_tenant_rows(tenant, after_id, most)
        except StoreDamagedError:
            return damage.count(self._rows, tenant, after_id, most)

    def select_heads(
        self, tenant: str, after_id: int, stop: int, limit: int
    ) -> list[tuple[int, UUID, int]]:
        try:
            return super().select_heads(tenant, after_id, stop, limit)
        except StoreDamagedError:
            return [*damage.heads(self._rows, tenant, after_id, stop, limit)]

    def select_changes(self, after_id: int, limit: int) -> list[tuple[int, UUID, int]]:
        try:
            return super().select_changes(after_id, limit)
        except StoreDamagedError:
            return damage.places(self._rows, after_id, None, limit)

    def let_go(self) -> None:
        self.datastore.empty_log()

    def notify(self) -> None:
        self._hints.give()

    def wait_for_hint(self, timeout_s: float) -> bool:
        return self._hints.wait(timeout_s)

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return SessionSubscription(self, gt, topics)

    def _rows(self, query: queries.Query) -> list[tuple[Any, ...]]:
        return self.datastore.rows(*query)

    def _key(self, originator_id: UUID | str) -> object:
        return cast("UUID", originator_id).bytes

    def _id(self, key: Any) -> UUID:
        return id_of(key)

    def _feed_stop(self, stop: int | None) -> int | None:
        # One writer: rows become visible in the order of their ids.
        return stop


def _insert(connection: sqlite3.Connection, stored_events: Sequence[StoredEvent]) -> None:
    parameters = [_parameters(stored) for stored in stored_events]
    with _collisions(connection, parameters):
        connection.executemany(INSERT, parameters)


def _last_id(connection: sqlite3.Connection) -> int:
    (last,) = connection.execute("SELECT last_insert_rowid()").fetchone()
    return int(last)


def _parameters(stored: StoredEvent) -> Parameters:
    return (
        row_tenant(stored),
        row_id(stored).bytes,
        stored.originator_version,
        stored.topic,
        stored.state,
        row_request_key(stored),
    )


@contextmanager
def _collisions(connection: sqlite3.Connection, parameters: Sequence[Parameters]) -> Iterator[None]:
    """Raise DuplicateRowError for the row that the unique indexes refuse.

    SQLite tells which index only in its message; but the rows before the refused one count as
    changes, and inside the transaction its version can be looked up.
    """
    before = connection.total_changes
    try:
        yield
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorname != "SQLITE_CONSTRAINT_UNIQUE":
            raise
        _, key, version, *_ = parameters[connection.total_changes - before]
        taken = connection.execute(EXISTS, (key, version)).fetchone()
        raise DuplicateRowError("version" if taken else "request") from error
