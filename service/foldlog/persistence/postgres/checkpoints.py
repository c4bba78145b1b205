"""The checkpoint store on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresAggregateRecorder

from foldlog.persistence import queries
from foldlog.persistence.checkpoints import MISFILED, CheckpointRecorder
from foldlog.persistence.postgres.connections import PostgresConnections
from foldlog.persistence.reading import EventReader
from foldlog.persistence.rows import row_tenant

# With RETURNING, since without it Citus reports a duplicate as an internal error.
DELETE = "DELETE FROM foldlog_checkpoints WHERE originator_id = %s"
INSERT = """
    INSERT INTO foldlog_checkpoints (tenant, originator_id, originator_version, topic, state)
    VALUES (%s, %s, %s, %s, %s){on_conflict} RETURNING originator_version
"""


class PostgresCheckpointRecorder(EventReader, CheckpointRecorder, PostgresAggregateRecorder):
    """Keeps checkpoints in a table beside the events."""

    datastore: PostgresConnections

    def __init__(self, datastore: PostgresConnections) -> None:
        super().__init__(datastore, events_table_name="foldlog_checkpoints")
        # The migrations make the tables.
        self.sql_create_statements = []

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        sql = INSERT.format(on_conflict=self.on_conflict)
        with self.datastore.writing() as connection:
            for e in stored_events:
                row = [row_tenant(e), e.originator_id, e.originator_version, e.topic, e.state]
                connection.execute(sql, row)

    def delete(self, originator_id: UUID) -> None:
        with self.datastore.writing() as connection:
            connection.execute(DELETE, [originator_id])

    def misfiled(self, originator_id: UUID, tenant: str) -> list[int]:
        return [version for (version,) in self._rows((MISFILED, [originator_id, tenant]))]

    def _rows(self, query: queries.Query) -> list[tuple[Any, ...]]:
        return self.datastore.rows(query)

    def _key(self, originator_id: UUID | str) -> object:
        return originator_id
