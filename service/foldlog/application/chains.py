"""Chains: recomputing that of every row of a session and its lineage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foldlog.application import decisions
from foldlog.application.domain import Segment, Session
from foldlog.application.history import spans_of
from foldlog.application.lane import Lane, Services
from foldlog.application.lanes import Lanes
from foldlog.application.rows import Row, RowReader
from foldlog.application.seal import GENESIS, chain_value, unsealed
from foldlog.application.texts import TextLostError
from foldlog.core.errors import EventCorruptError

MAX_FAULTS = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """A stored row that is not as it was written."""

    session_id: str
    seq: int | None
    description: str


@dataclass(slots=True)
class Verdict:
    """What recomputing a chain found."""

    next_seq: int
    row_count: int = 0
    chain: bytes = GENESIS
    faults: list[Fault] = field(default_factory=list)


class Chains:
    """Verifies chains. What is damaged is told, not raised: finding it is the purpose."""

    def __init__(self, services: Services, lanes: Lanes, tenant: str) -> None:
        self._services = services
        self._lanes = lanes
        self._tenant = tenant

    async def verify(self, session_id: str) -> Verdict:
        """Recompute the chain of every row of a session and its lineage."""
        with self._lanes.use(self._tenant, session_id) as lane:
            try:
                head = await lane.refresh()
            except EventCorruptError:
                return await self._services.readers.run(self._without_head, lane, session_id)
            decisions.require_session(head, session_id)
            spans, chain, next_seq = spans_of(head), head.chain, head.next_seq
        return await self._services.readers.run(self._verify, spans, chain, next_seq)

    def _without_head(self, lane: Lane, session_id: str) -> Verdict:
        """Verify a session whose head cannot be made, as far as its own rows go."""
        newest = self._services.store.recorder.last_version(lane.id) or 0
        return self._verify([Segment(lane.id, session_id, newest, 0)], None, 0)

    def _verify(self, spans: Sequence[Segment], chain: bytes | None, next_seq: int) -> Verdict:
        verdict = Verdict(next_seq)
        for span in spans:
            _Walk(self._services.history.reader, span, verdict).walk()
        if chain is not None and verdict.chain != chain and not verdict.faults:
            verdict.faults.append(Fault(spans[-1].session_id, None, "the newest row is missing"))
        return verdict


class _Walk:
    """The rows of one stretch, one after the other."""

    def __init__(self, reader: RowReader, span: Segment, verdict: Verdict) -> None:
        self._reader = reader
        self._span = span
        self._verdict = verdict
        self._expected = 1
        self._read_texts: dict[bytes, bool] = {}

    def walk(self) -> None:
        """Look at every row until there are too many faults."""
        span = self._span
        try:
            for row in self._reader.rows(span.aggregate_id, 0, span.to_version):
                self._look_at(row)
                if len(self._verdict.faults) >= MAX_FAULTS:
                    return
        except EventCorruptError as error:  # the first row: without it nothing can be checked
            self._note(None, error.damage)
            return
        if self._expected <= span.to_version:
            self._note(None, f"rows from {self._expected} on are missing")

    def _look_at(self, row: Row) -> None:
        version = row.ref.version
        seq = row.envelope.seq if row.topic == Session.Event.TOPIC else None
        if version != self._expected:
            self._note(None, f"rows {self._expected} to {version - 1} are missing")
        if row.damage is not None:
            self._note(seq, row.damage.damage)
        if row.is_legible:
            self._look_at_texts(row, seq)
            self._follow(row, seq)
        self._expected = version + 1
        self._verdict.row_count += 1

    def _look_at_texts(self, row: Row, seq: int | None) -> None:
        """Look at the large texts that a header refers to, each once."""
        texts = row.envelope.header_texts
        for digest in filter(None, (texts.system_prompt_sha256, texts.tools_sha256)):
            if digest not in self._read_texts:
                self._read_texts[digest] = self._is_text(digest)
            if not self._read_texts[digest]:
                self._note(seq, "a text of its header is lost or damaged")

    def _is_text(self, digest: bytes) -> bool:
        try:
            self._reader.texts.read(digest)
        except TextLostError:
            return False
        return True

    def _follow(self, row: Row, seq: int | None) -> None:
        verdict, envelope = self._verdict, row.envelope
        chain = chain_value(
            verdict.chain, row.ref.aggregate_id, row.ref.version, unsealed(envelope)
        )
        if chain != envelope.chain:
            self._note(seq, "it does not continue the chain")
        verdict.chain = envelope.chain

    def _note(self, seq: int | None, description: str) -> None:
        self._verdict.faults.append(Fault(self._span.session_id, seq, description))
