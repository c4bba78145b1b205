"""Audits: a session looked at from its stored rows alone, past every cache."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foldlog.application.feed import Feed
from foldlog.application.identity import aggregate_id
from foldlog.application.index_audit import indexed
from foldlog.application.lane import Services
from foldlog.application.lanes import Lanes
from foldlog.application.session_audit import Audit, Remembered
from foldlog.application.verdict import Verdict
from foldlog.core.errors import InvalidFieldError, SessionDeletedError, SessionNotFoundError
from foldlog.core.validation import validate_session_id

MAX_VERSIONS = 10_000


class Chains:
    """Audits sessions. What is damaged is told, not raised: finding it is the purpose."""

    def __init__(
        self, services: Services, lanes: Lanes, feed: Feed, id_bytes: int, tenant: str
    ) -> None:
        self._services = services
        self._lanes, self._feed = lanes, feed
        self._id_bytes = id_bytes
        self._tenant = tenant

    async def verify(
        self, session_id: str, versions: Sequence[int] = (), include_deleted: bool = False
    ) -> Verdict:
        """Audit a session and its lineage.

        Raises SessionNotFoundError, and SessionDeletedError unless deleted ones are included.
        """
        validate_session_id(session_id, self._id_bytes)
        if len(versions) > MAX_VERSIONS or any(version < 1 for version in versions):
            raise InvalidFieldError.of("versions", f"at most {MAX_VERSIONS}, each from 1 on")
        if not await self._lanes.show(self._tenant, session_id):
            raise SessionNotFoundError(session_id=session_id)
        id_ = aggregate_id(self._tenant, session_id)
        remembered = self._remembered(id_)
        found = await indexed(self._feed, id_, self._tenant)
        audit = Audit(self._services, self._tenant, id_, session_id, frozenset(versions))
        verdict = await self._services.readers.run(audit.run, remembered, found)
        if verdict.is_deleted and not include_deleted:
            raise SessionDeletedError(session_id=session_id)
        return verdict

    def _remembered(self, id_: UUID) -> Remembered | None:
        """Return where a session's head stands in this process, if it has it."""
        lane = self._lanes.known(id_)
        if lane is None or not lane.head.exists:
            return None
        return Remembered(lane.head.version, lane.head.chain)
