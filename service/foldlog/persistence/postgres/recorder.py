"""The event recorder on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, IntegrityError, StoredEvent, Subscription
from eventsourcing.postgres import PostgresApplicationRecorder

from foldlog.persistence import queries
from foldlog.persistence.errors import DuplicateRowError, HeldError
from foldlog.persistence.postgres.connections import PooledConnection, PostgresConnections
from foldlog.persistence.postgres.insertion import insert, insertion_order, portions, prepare
from foldlog.persistence.postgres.loop_insertion import PostgresLoopInserter
from foldlog.persistence.postgres.watermark import feed_stop
from foldlog.persistence.reading import FeedReader
from foldlog.persistence.recorder import (
    STATEMENT_ROWS,
    LoopInserter,
    SessionRecorder,
    counted,
)
from foldlog.persistence.subscription import SessionSubscription

UPDATE = """
    UPDATE foldlog_events e SET state = n.state
    FROM unnest(%s::bigint[], %s::bytea[]) AS n (version, state)
    WHERE e.originator_id = %s AND e.originator_version = n.version
"""

# A look-up per version, whatever the planner believes: it may take a list of versions for a filter
# on all rows of the session.
VERSIONS = f"""
    SELECT {queries.EVENT} FROM unnest(%s::bigint[]) AS w (version) CROSS JOIN LATERAL (
        SELECT {queries.EVENT} FROM foldlog_events
        WHERE originator_id = %s AND originator_version = w.version LIMIT 1) AS e
    ORDER BY originator_version
"""


HOLD_BRIEFLY = "SET LOCAL lock_timeout = '100ms'"


class PostgresSessionRecorder(FeedReader, PostgresApplicationRecorder, SessionRecorder):
    """Writes with one statement in autocommit where it can, without locks, and without retrying.

    Notification ids are transaction ids and ordinals: they rise, with gaps.
    """

    datastore: PostgresConnections

    def __init__(self, datastore: PostgresConnections) -> None:
        super().__init__(datastore, events_table_name="foldlog_events")
        # The migrations make the tables.
        self.sql_create_statements = []

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        if not stored_events:
            return []
        (stored_events,) = counted([stored_events])
        order = insertion_order(stored_events)
        parts = list(portions([stored_events[place] for place in order]))
        if len(parts) > 1:
            base, _ = self._insert_all(parts)
        else:
            with self.datastore.committing() as connection:
                base = self._insert(connection, parts[0], 0)
        ids = [0] * len(order)
        for ordinal, place in enumerate(order):
            ids[place] = base | ordinal
        return ids

    def loop_inserter(self) -> LoopInserter | None:
        if self.datastore.size == 1:
            return None  # it is kept by the inserter, and others are to have one too
        return PostgresLoopInserter(self.datastore, self._prepare)

    def is_held(self, stored_event: StoredEvent) -> bool:
        # Inserting a row waits for a transaction that is inserting it, committing or not.
        try:
            with (
                self.datastore.connection() as connection,
                connection.transaction(force_rollback=True),
            ):
                connection.execute(HOLD_BRIEFLY)
                self._insert(connection, [stored_event], 0)
        except HeldError:
            return True
        except DuplicateRowError:
            pass
        return False

    def insert_chunks(self, chunks: Iterable[Sequence[StoredEvent]]) -> int:
        parts = (part for chunk in counted(chunks) for part in portions(chunk))
        base, count = self._insert_all(parts)
        return base | count - 1 if count else 0

    def _insert_all(self, parts: Iterable[Sequence[StoredEvent]]) -> tuple[int, int]:
        """Insert the parts in one transaction; return its part of the ids, and the row count."""
        base = count = 0
        with self.datastore.inserting() as connection:
            for part in parts:
                base = self._insert(connection, part, count)
                count += len(part)
        return base, count

    def _insert(
        self, connection: PooledConnection, rows: Sequence[StoredEvent], first_ordinal: int
    ) -> int:
        self._prepare(connection)
        return insert(
            connection,
            rows,
            self.datastore.xid_offset,
            first_ordinal,
            is_prepared=connection.has_prepared,
        )

    def _prepare(self, connection: PooledConnection) -> None:
        if connection.is_direct and not connection.has_prepared:
            prepare(connection)
            connection.has_prepared = True

    def replace_states(self, originator_id: UUID, states: Sequence[tuple[int, bytes]]) -> None:
        with self.datastore.writing() as connection:
            for first in range(0, len(states), STATEMENT_ROWS):
                part = states[first : first + STATEMENT_ROWS]
                new = [version for version, _ in part], [state for _, state in part]
                if connection.execute(UPDATE, [*new, originator_id]).rowcount != len(part):
                    raise IntegrityError(f"a row of {originator_id} to replace is missing")

    def let_go(self) -> None:
        """Do nothing: VACUUM, which runs by itself, makes room of dead rows."""

    def notify(self) -> None:
        self.datastore.hints.notify()

    def wait_for_hint(self, timeout_s: float) -> bool:
        return self.datastore.hints.wait(timeout_s)

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return SessionSubscription(self, gt, topics)

    def _wanted(self, key: object, versions: Sequence[int]) -> queries.Query:
        return VERSIONS, [list(versions), key]

    def _rows(self, query: queries.Query) -> list[tuple[Any, ...]]:
        return self.datastore.rows(query)

    def _key(self, originator_id: UUID | str) -> object:
        return originator_id

    def _id(self, key: Any) -> UUID:
        assert isinstance(key, UUID)
        return key

    def _feed_stop(self, stop: int | None) -> int | None:
        with self.datastore.connection() as connection:
            bound = feed_stop(connection, self.datastore.xid_offset)
        return bound if stop is None else min(stop, bound)
