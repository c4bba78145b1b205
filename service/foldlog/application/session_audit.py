"""An audit of one session: of its rows, then of what was made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog.application.checkpoint_audit import CheckpointAudit, checkpoint_versions
from foldlog.application.domain import Segment, segments_from
from foldlog.application.index_audit import IndexAudit, Indexed
from foldlog.application.lane import Services
from foldlog.application.reference_audit import ReferenceAudit
from foldlog.application.replayed import Replayed
from foldlog.application.verdict import Fault, Verdict
from foldlog.application.walk import Walk
from foldlog.core.errors import SessionNotFoundError
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.v1.service_pb2 import AUDITED_PART_CHECKPOINT


@dataclass(frozen=True, slots=True)
class Remembered:
    """Where a session's head stands in this process: it was there, so its row is to be there."""

    version: int
    chain: bytes


class Audit:
    """Looks at a session and its lineage. Blocking: called on reader threads."""

    def __init__(
        self,
        services: Services,
        tenant: str,
        aggregate_id: UUID,
        session_id: str,
        versions: frozenset[int],
    ) -> None:
        self._store, self._history = services.store, services.history
        self._tenant, self._id, self._session_id = tenant, aggregate_id, session_id
        self._versions = versions
        self._verdict = Verdict()
        self._replays: dict[UUID, Replayed] = {}

    def run(self, remembered: Remembered | None, found: Indexed) -> Verdict:
        """Return what is found. Raises SessionNotFoundError."""
        verdict = self._verdict
        newest = self._store.recorder.last_version(self._id) or 0
        last = max(newest, remembered.version if remembered else 0)
        if not last and found.entry is None:
            raise SessionNotFoundError(session_id=self._session_id)
        own = Segment(self._id, self._session_id, last, 0)
        spans = [*self._ancestors(), own]
        for span in spans[:-1]:
            self._walk(span, frozenset())
        index = IndexAudit(found, self._id, self._tenant, self._session_id)
        references = ReferenceAudit(found.noted, self._tenant, self._session_id)
        wanted = self._versions | ({remembered.version} if remembered else set())
        self._walk(own, wanted, index, references).tell(verdict)
        if not last:
            self._note("every row of it is missing")
        if remembered and not verdict.faults:
            self._compare(remembered)
        self._look_at_derived(spans, index, references, found.misfiled)
        verdict.chains = {v: c for v, c in verdict.chains.items() if v in self._versions}
        return verdict

    def _compare(self, remembered: Remembered) -> None:
        if self._verdict.chains[remembered.version] != remembered.chain:
            self._note("its rows are not those that this process has read or written before")

    def _note(self, description: str) -> None:
        self._verdict.note([Fault(self._session_id, None, description)])

    def _note_checkpoint(self, description: str) -> None:
        self._verdict.note([Fault(self._session_id, None, description, AUDITED_PART_CHECKPOINT)])

    def _walk(
        self, span: Segment, versions: frozenset[int], *audits: IndexAudit | ReferenceAudit
    ) -> Replayed:
        stands_at = checkpoint_versions(self._store, span.aggregate_id)
        replayed = Replayed(span.aggregate_id, self._tenant, stands_at)
        self._replays[span.aggregate_id] = replayed
        reader, recorder = self._history.reader, self._store.recorder
        walk = Walk(reader, recorder, self._tenant, span, self._verdict, versions)
        for walked in walk.rows():
            replayed.take(walked.row)
            for audit in audits:
                audit.take(walked)
        return replayed

    def _ancestors(self) -> Sequence[Segment]:
        """Return the lineage that the first row names; none if it cannot be read."""
        rows = self._store.recorder.select_events(self._id, gt=0, lte=1)
        try:
            first = Envelope.FromString(rows[0].state if rows else b"")
            named = StoredFact.FromString(first.body).origin.segments
            return segments_from(named or first.lineage)
        except (DecodeError, ValueError):
            return ()

    def _look_at_derived(
        self,
        spans: Sequence[Segment],
        index: IndexAudit,
        references: ReferenceAudit,
        misfiled: Sequence[int],
    ) -> None:
        """Compare what was made of the rows with them, if they are sound themselves."""
        if self._verdict.faults:
            return
        self._verdict.note(index.faults())
        if index.is_erased:
            return  # its checkpoints go once the rows have lost what they are compared with
        if not self._verdict.is_deleted:  # of a deleted one attachments are collected
            self._verdict.note(list(references.faults(self._store.objects.table)))
        for version in misfiled:
            self._note_checkpoint(f"that of {version} rows is filed under another tenant")
        states = {id_: replayed.states for id_, replayed in self._replays.items()}
        fault = CheckpointAudit(self._store, self._history, spans, states).fault()
        fault = fault or self._ahead()
        if fault is not None:
            self._verdict.note([fault])

    def _ahead(self) -> Fault | None:
        """Return the fault of a checkpoint of more rows than there are."""
        versions = checkpoint_versions(self._store, self._id)
        newest = self._store.recorder.last_version(self._id) or 0
        if not versions or versions[-1] <= newest:
            return None
        damage = f"that of {versions[-1]} rows is of more than there are"
        return Fault(self._session_id, None, damage, AUDITED_PART_CHECKPOINT)
