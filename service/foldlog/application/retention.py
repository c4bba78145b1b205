"""SnapshotSession: dropping the bodies of what no longer counts and no fork reads."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foldlog.application import decisions
from foldlog.application.bodies import Bodies
from foldlog.application.domain import Answered, Session
from foldlog.application.feed import Feed
from foldlog.application.fold import Fold, Live
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.rows import Row
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
        request = self._writing.request(request_id, b"snapshot")

        hidden: list[Row] = []

        async def prepare(lane: Lane) -> int:
            head = await lane.refresh()
            decisions.require_session(head, session_id)
            fold = (await lane.current_fold()).sound()
            live, whole_from_seq = tuple(fold.surface), whole_from(fold)
            hidden[:] = await self._services.readers.run(self._hidden, head.copy(), live)
            return max(whole_from_seq, head.whole_from_seq)

        def decide(head: Session, whole_from_seq: int) -> Decided:
            decisions.require_session(head, session_id)
            seqs = [row.envelope.seq for row in hidden if not row.envelope.dropped]
            # A fact that drops nothing is written too: a retry is to drop nothing either.
            if not seqs:
                whole_from_seq = head.whole_from_seq
            call = self._writing.call(request)
            return decisions.drop_history(head, call, session_id, seqs, whole_from_seq)

        async def replay(lane: Lane, answered: Answered) -> tuple[int, int, int]:
            row = await self._services.readers.run(
                self._services.store.recorder.select_versions, lane.id, [answered.version]
            )
            envelope = Envelope.FromString(row[0].state)
            fact = StoredFact.FromString(envelope.body).fact.history_dropped
            count = sum(r.last - r.first + 1 for r in fact.dropped)
            return count, fact.whole_from_seq, envelope.seq

        async with self._lanes.use(self._tenant, session_id) as lane:
            answer: tuple[int, int, int] = await lane.write(Write(request, decide, replay, prepare))
            # What a crash leaves undone here, the next snapshot finds again.
            kept = await self._kept(lane.id)
            await self._services.readers.run(self._drop, lane.id, kept, hidden)
        self._bodies.forget(row.ref for row in hidden if row.ref.version > kept)
        return answer

    async def _kept(self, aggregate_id: UUID) -> int:
        """Return the version up to which forks read a session's rows.

        A fork that commits after this looks at its parent again and undoes itself if what it needs
        is dropped.
        """
        await self._feed.settled()
        index = self._services.store.index
        forks = await self._services.readers.run(index.forks_reading, aggregate_id)
        return max((to_version for _, _, to_version in forks), default=0)

    def _hidden(self, head: Session, surface: Sequence[Live]) -> list[Row]:
        """Return the rows of a session's own surface events that do not count and have bodies."""
        live = frozenset(entry.row for entry in surface)
        rows = self._services.history.reader.rows(head.id, 0, head.version)
        return [
            row
            for row in rows
            if row.is_event
            and row.damage is None
            and row.envelope.type in SURFACE_TYPES
            and row.envelope.body
            and row.ref not in live
        ]

    def _drop(self, aggregate_id: UUID, kept: int, rows: Sequence[Row]) -> None:
        """Mark rows as dropped, and take the bodies of those that no fork reads."""
        for start in range(0, len(rows), PURGE_ROWS):
            part = [
                row
                for row in rows[start : start + PURGE_ROWS]
                if row.ref.version > kept or not row.envelope.dropped
            ]
            before_bytes = sum(row.envelope.ByteSize() for row in part)
            states = [
                (row.ref.version, dropped(row.envelope, row.ref.version <= kept)) for row in part
            ]
            self._services.store.recorder.replace_states(aggregate_id, states)
            self._services.meter.freed(before_bytes - sum(len(state) for _, state in states))


def dropped(envelope: Envelope, keeps_body: bool) -> bytes:
    """Return a row's state marked as dropped, with or without its body; all else stays."""
    envelope.dropped = True
    if not keeps_body:
        envelope.ClearField("body")
    return envelope.SerializeToString()


def whole_from(fold: Fold) -> int:
    """Return the seq from which every state needs only what is on the surface now."""
    newest: Sequence[int] = [
        fold.replaces[-1].seq if fold.replaces else 0,
        fold.rewinds[-1].seq if fold.rewinds else 0,
    ]
    return max(newest)
