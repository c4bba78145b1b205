"""The checkpoint store on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteAggregateRecorder

from foldlog.persistence import queries
from foldlog.persistence.checkpoints import MISFILED, CheckpointRecorder
from foldlog.persistence.reading import EventReader
from foldlog.persistence.rows import row_id, row_tenant
from foldlog.persistence.sqlite.connections import SQLiteConnections

INSERT = (
    "INSERT INTO foldlog_checkpoints (tenant, originator_id, originator_version, topic, state)"
    " VALUES (?,?,?,?,?)"
)
DELETE = "DELETE FROM foldlog_checkpoints WHERE originator_id = ?"


class SQLiteCheckpointRecorder(EventReader, CheckpointRecorder, SQLiteAggregateRecorder):
    """Keeps checkpoints in a table beside the events."""

    datastore: SQLiteConnections

    def __init__(self, datastore: SQLiteConnections) -> None:
        super().__init__(datastore, events_table_name="foldlog_checkpoints")

    def construct_create_table_statements(self) -> list[str]:
        """Return nothing: the migrations make the tables."""
        return []

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        parameters = [
            (row_tenant(e), row_id(e).bytes, e.originator_version, e.topic, e.state)
            for e in stored_events
        ]
        with self.datastore.writer() as connection:
            connection.executemany(INSERT + self.on_conflict, parameters)

    def delete(self, originator_id: UUID) -> None:
        with self.datastore.writer() as connection:
            connection.execute(DELETE, (originator_id.bytes,))

    def misfiled(self, originator_id: UUID, tenant: str) -> list[int]:
        return [version for (version,) in self._rows((MISFILED, [originator_id.bytes, tenant]))]

    def _rows(self, query: queries.Query) -> list[tuple[Any, ...]]:
        return self.datastore.rows(*query)

    def _key(self, originator_id: UUID | str) -> object:
        return cast("UUID", originator_id).bytes
