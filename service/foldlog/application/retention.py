"""SnapshotSession: dropping the bodies of what no longer counts and no fork reads."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foldlog.application import decisions
from foldlog.application.bodies import Bodies
from foldlog.application.domain import Answered, Session
from foldlog.application.feed import Feed
from foldlog.application.fold import Fold, RowRef
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.writing import Writing
from foldlog.core.event import SURFACE_TYPES
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact

PURGE_ROWS = 500


class Retention:
    """Drops history."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        feed: Feed,
        bodies: Bodies,
        writing: Writing,
        tenant: str,
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._feed = feed
        self._bodies = bodies
        self._writing = writing
        self._tenant = tenant

    async def snapshot(self, session_id: str, request_id: str) -> tuple[int, int, int]:
        """Drop history and return (dropped count, whole_from_seq, next_seq)."""
        self._writing.judge_session_id(session_id)
        request = self._writing.request(request_id, b"snapshot")

        covered: dict[RowRef, int] = {}

        async def prepare(lane: Lane) -> int:
            head = await lane.refresh()
            decisions.require_session(head, session_id)
            kept = await self._kept(lane.id)
            fold = await lane.current_fold()
            live = frozenset(entry.row for entry in fold.surface)
            stored = await self._services.readers.run(
                self._with_bodies, head.id, kept, head.version
            )
            covered.clear()
            covered.update((ref, seq) for ref, seq in stored if ref not in live)
            return max(whole_from(fold), head.whole_from_seq)

        def decide(head: Session, whole_from_seq: int) -> Decided:
            decisions.require_session(head, session_id)
            if not covered:
                return Decided((0, head.whole_from_seq, head.next_seq))
            call, seqs = self._writing.call(request), list(covered.values())
            return decisions.drop_history(head, call, session_id, seqs, whole_from_seq)

        async def replay(lane: Lane, answered: Answered) -> tuple[int, int, int]:
            row = await self._services.readers.run(
                self._services.store.recorder.select_versions, lane.id, [answered.version]
            )
            envelope = Envelope.FromString(row[0].state)
            fact = StoredFact.FromString(envelope.body).fact.history_dropped
            count = sum(r.last - r.first + 1 for r in fact.dropped)
            return count, fact.whole_from_seq, envelope.seq

        with self._lanes.use(self._tenant, session_id) as lane:
            answer: tuple[int, int, int] = await lane.write(Write(request, decide, replay, prepare))
            # What a crash leaves here undone, the next snapshot finds again.
            kept = await self._kept(lane.id)
            gone = [ref for ref in covered if ref.version > kept]
            await self._services.readers.run(self._drop, lane.id, gone)
        self._bodies.forget(gone)
        return answer

    async def _kept(self, aggregate_id: UUID) -> int:
        """Return the version up to which forks read a session's rows.

        A fork that commits after this looks at its parent again and undoes itself if what it needs
        is gone.
        """
        await self._feed.indexed()
        index = self._services.store.index
        forks = await self._services.readers.run(index.forks_reading, aggregate_id)
        return max((to_version for _, _, to_version in forks), default=0)

    def _with_bodies(
        self, aggregate_id: UUID, after: int, version: int
    ) -> list[tuple[RowRef, int]]:
        """Return (row, seq) of surface events of a session's own rows that have bodies."""
        reader = self._services.history.reader
        return [
            (row.ref, row.envelope.seq)
            for row in reader.rows(aggregate_id, after, version)
            if row.is_event and row.envelope.type in SURFACE_TYPES and not row.envelope.dropped
        ]

    def _drop(self, aggregate_id: UUID, refs: Sequence[RowRef]) -> None:
        """Turn rows into tombstones."""
        recorder, reader = self._services.store.recorder, self._services.history.reader
        for start in range(0, len(refs), PURGE_ROWS):
            versions = [ref.version for ref in refs[start : start + PURGE_ROWS]]
            rows = reader.some(aggregate_id, versions)
            states = [(row.ref.version, tombstone(row.envelope)) for row in rows]
            recorder.replace_states(aggregate_id, states)


def tombstone(envelope: Envelope) -> bytes:
    """Return a row's state without its body; all else stays."""
    envelope.ClearField("body")
    envelope.dropped = True
    return envelope.SerializeToString()


def whole_from(fold: Fold) -> int:
    """Return the seq from which every state needs only what is on the surface now."""
    newest: Sequence[int] = [
        fold.replaces[-1].seq if fold.replaces else 0,
        fold.rewinds[-1].seq if fold.rewinds else 0,
    ]
    return max(newest)
