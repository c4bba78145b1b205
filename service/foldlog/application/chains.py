"""Audits: a session looked at from its stored rows alone, past every cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog.application.domain import Segment, segments_from
from foldlog.application.identity import aggregate_id
from foldlog.application.lane import Services
from foldlog.application.lanes import Lanes
from foldlog.application.replayed import Replayed
from foldlog.application.verdict import Fault, Verdict
from foldlog.application.walk import Walk
from foldlog.core.errors import InvalidFieldError, SessionDeletedError, SessionNotFoundError
from foldlog.core.validation import validate_session_id
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact

MAX_VERSIONS = 10_000


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where a session's head stands in this process: it was there, so its row is to be there."""

    version: int
    chain: bytes


class Chains:
    """Audits sessions. What is damaged is told, not raised: finding it is the purpose."""

    def __init__(self, services: Services, lanes: Lanes, id_bytes: int, tenant: str) -> None:
        self._services = services
        self._lanes = lanes
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
        lane = self._lanes.known(id_)
        remembered = None
        if lane is not None and lane.head.exists:
            remembered = Remembered(lane.head.version, lane.head.chain)
        verdict = await self._services.readers.run(
            self._verify, id_, session_id, frozenset(versions), remembered
        )
        if verdict.is_deleted and not include_deleted:
            raise SessionDeletedError(session_id=session_id)
        return verdict

    def _verify(
        self, id_: UUID, session_id: str, versions: frozenset[int], remembered: Remembered | None
    ) -> Verdict:
        newest = self._services.store.recorder.last_version(id_) or 0
        if remembered is None and not newest:
            raise SessionNotFoundError(session_id=session_id)
        verdict = Verdict()
        last = max(newest, remembered.version if remembered else 0)
        for span in self._ancestors(id_):
            self._walk(span, verdict)
        wanted = versions | ({remembered.version} if remembered else set())
        replayed = self._walk(Segment(id_, session_id, last, 0), verdict, wanted)
        replayed.tell(verdict)
        if remembered and not verdict.faults:
            found = verdict.chains[remembered.version]
            if found != remembered.chain:
                damage = "its rows are not those that this process has read or written before"
                verdict.note([Fault(session_id, None, damage)])
        verdict.chains = {v: c for v, c in verdict.chains.items() if v in versions}
        return verdict

    def _walk(
        self, span: Segment, verdict: Verdict, versions: frozenset[int] = frozenset()
    ) -> Replayed:
        store, reader = self._services.store, self._services.history.reader
        replayed = Replayed(span.aggregate_id, self._tenant)
        walk = Walk(reader, store.recorder, self._tenant, span, verdict, versions)
        for walked in walk.rows():
            replayed.take(walked.row)
        return replayed

    def _ancestors(self, id_: UUID) -> tuple[Segment, ...]:
        """Return the lineage that a session's first row names; none if it cannot be read."""
        rows = self._services.store.recorder.select_events(id_, gt=0, lte=1)
        try:
            first = Envelope.FromString(rows[0].state if rows else b"")
            named = StoredFact.FromString(first.body).origin.segments
            return segments_from(named or first.lineage)
        except (DecodeError, ValueError):
            return ()
