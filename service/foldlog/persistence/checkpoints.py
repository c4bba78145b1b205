"""Where checkpoints of folds are kept: a cache that survives a restart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, StoredEvent

MISFILED = (
    "SELECT originator_version FROM foldlog_checkpoints WHERE originator_id = %s AND tenant <> %s"
    " ORDER BY originator_version"
)


class CheckpointRecorder(AggregateRecorder):
    """Writes and reads checkpoints; a checkpoint's version is that of the last row it covers."""

    on_conflict: ClassVar[str] = " ON CONFLICT DO NOTHING"

    @abstractmethod
    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        """Write checkpoints; one whose version is stored already is ignored."""

    @abstractmethod
    def delete(self, originator_id: UUID) -> None:
        """Delete a session's checkpoints."""

    @abstractmethod
    def misfiled(self, originator_id: UUID, tenant: str) -> list[int]:
        """Return the versions of a session's checkpoints that are filed under another tenant."""

    def latest(self, originator_id: UUID, lte_version: int) -> StoredEvent | None:
        """Return the newest checkpoint that covers no row after this version."""
        found = self.select_events(originator_id, lte=lte_version, desc=True, limit=1)
        return found[0] if found else None
