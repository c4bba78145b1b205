"""The table of erasures that are under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from foldlog.persistence.statements import Statements

END = "DELETE FROM foldlog_erasures WHERE aggregate_id = %s"
PENDING = (
    "SELECT e.tenant, s.session_id FROM foldlog_erasures e"
    " JOIN foldlog_sessions s USING (aggregate_id) ORDER BY e.aggregate_id LIMIT %s"
)


class PendingErasure(NamedTuple):
    """A session whose erasure began."""

    tenant: str
    session_id: str


class ErasureTable:
    """Reads what is under way, and forgets what is done; the index begins it from the feed.

    `key` returns an aggregate id as the database takes it.
    """

    def __init__(self, statements: Statements, key: Callable[[UUID], object]) -> None:
        self._statements = statements
        self._key = key

    def pending(self, limit: int) -> list[PendingErasure]:
        """Return some of those that are not done."""
        return [PendingErasure(*row) for row in self._statements.rows((PENDING, [limit]))]

    def end(self, aggregate_id: UUID) -> None:
        """Forget one that is done, or given up."""
        self._statements.write([(END, [self._key(aggregate_id)])])
