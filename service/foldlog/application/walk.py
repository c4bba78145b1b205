"""A walk along stored rows: each is looked at, with every column of its table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from foldlog.application.domain import Segment, Session
from foldlog.application.fold import holds
from foldlog.application.identity import key_of
from foldlog.application.rows import PAGE_BYTES, Row, RowReader
from foldlog.application.seal import GENESIS, chain_value, unsealed
from foldlog.application.texts import TextLostError
from foldlog.application.verdict import Fault, Verdict
from foldlog.core.errors import EncryptionKeyMissingError, EventCorruptError
from foldlog.internal.v1.storage_pb2 import StoredFact
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.rows import WholeRow

NO_PLACE = -1


@dataclass(frozen=True, slots=True)
class Walked:
    """A row that was looked at: as it is stored, and decoded."""

    stored: WholeRow
    row: Row


class Walk:
    """The rows of one stretch of a lineage. What is wrong with them goes into a verdict.

    The verdict's chain is where the stretch before ended. The values recomputed at `versions` go
    into the verdict as well.
    """

    def __init__(
        self,
        reader: RowReader,
        recorder: SessionRecorder,
        tenant: str,
        span: Segment,
        verdict: Verdict,
        versions: frozenset[int] = frozenset(),
    ) -> None:
        self._reader, self._recorder = reader, recorder
        self._tenant, self._span, self._verdict = tenant, span, verdict
        self._versions = versions
        self._expected = 1
        self._place = NO_PLACE
        self._near_seq = 0
        self._is_linked = True
        self._read_texts: dict[bytes, bool] = {}
        self._closed: set[str] = set()
        self._marked: list[int] = []
        self._dropped: list[tuple[int, int]] = []
        verdict.chain = verdict.chain or GENESIS

    def rows(self) -> Iterator[Walked]:
        """Yield the rows, ascending, once each is looked at, until there are too many faults."""
        last = self._span.to_version
        try:
            for stored in self._stored(0):
                if stored.originator_version > last:
                    break
                row = self._reader.decode(stored, self._near_seq)
                self._look_at(stored, row)
                yield Walked(stored, row)
                if self._verdict.is_full:
                    return
        except EventCorruptError as error:  # the first row: without it nothing can be checked
            self._note(None, error.damage)
            return
        if self._expected <= last:
            self._note(None, f"rows from {self._expected} on are missing")
        self._settle_drops()

    def _stored(self, after: int) -> Iterator[WholeRow]:
        while page := self._recorder.select_whole(self._span.aggregate_id, after, PAGE_BYTES):
            yield from page
            after = page[-1].originator_version

    def _look_at(self, stored: WholeRow, row: Row) -> None:
        version, seq = row.ref.version, row.envelope.seq if row.is_event else None
        if version != self._expected:
            self._note(None, f"rows {self._expected} to {version - 1} are missing")
            self._is_linked = False
        if isinstance(row.damage, EncryptionKeyMissingError):
            self._note_closed(row.damage.damage)
        elif row.damage is not None:
            self._note(seq, row.damage.damage)
        if row.is_legible:
            self._look_at_columns(stored, row, seq)
            if row.envelope.body:
                self._look_at_texts(row, seq)
            self._follow(row, seq)
            self._take_drops(row)
            self._near_seq = row.envelope.seq + row.is_event
        else:
            self._is_linked = False
        self._expected, self._place = version + 1, stored.id
        self._verdict.row_count += 1

    def _look_at_columns(self, stored: WholeRow, row: Row, seq: int | None) -> None:
        """Look at what the chain does not cover: it is in the row for the database's sake."""
        if stored.tenant != self._tenant:
            self._note(seq, "it is filed under another tenant")
        if (stored.request_key or b"") != key_of(row.envelope):
            self._note(seq, "its request key is another one")
        if stored.id <= self._place:
            self._note(seq, "its place in the feed is not behind that of the row before it")

    def _look_at_texts(self, row: Row, seq: int | None) -> None:
        """Look at the large texts that a header refers to, each once."""
        texts = row.envelope.header_texts
        for digest in filter(None, (texts.system_prompt_sha256, texts.tools_sha256)):
            if digest not in self._read_texts:
                self._read_texts[digest] = self._is_text(digest)
            if not self._read_texts[digest] and not self._reader.is_stripped(row.ref):
                self._note(seq, "a text of its header is lost or damaged")

    def _is_text(self, digest: bytes) -> bool:
        try:
            self._reader.texts.read(digest)
        except (TextLostError, EncryptionKeyMissingError):
            return False
        return True

    def _follow(self, row: Row, seq: int | None) -> None:
        """Compare a row's chain value with what the one before and the row itself come to.

        Behind a row that is lost there is nothing to compare with.
        """
        verdict, ref = self._verdict, row.ref
        chain = chain_value(
            verdict.chain, ref.aggregate_id, ref.version, row.topic, unsealed(row.envelope)
        )
        if self._is_linked and chain != row.envelope.chain:
            self._note(seq, "it does not continue the chain")
        if self._is_linked and ref.version in self._versions:
            verdict.chains[ref.version] = chain
        verdict.chain, self._is_linked = row.envelope.chain, True

    def _take_drops(self, row: Row) -> None:
        if row.envelope.dropped:
            self._marked.append(row.envelope.seq)
        if row.topic == Session.Erased.TOPIC and row.damage is None:
            self._dropped.append((0, row.envelope.seq))
        if row.topic == Session.HistoryDropped.TOPIC and row.damage is None:
            fact = StoredFact.FromString(row.envelope.body).fact.history_dropped
            self._dropped += [(each.first, each.last) for each in fact.dropped]

    def _settle_drops(self) -> None:
        """Find for each row that is marked as dropped the fact that says so.

        The mark is no part of the chain, since it comes later, and so may the fact: behind the part
        of an ancestor that is read, or behind where this walk was to end.
        """
        if self._undropped():
            for stored in self._stored(self._span.to_version):
                self._take_drops(self._reader.decode(stored, self._near_seq))
        for seq in self._undropped():
            self._note(seq, "it is marked as dropped, and no fact says so")

    def _undropped(self) -> list[int]:
        ranges = sorted(self._dropped)
        return [seq for seq in self._marked if not holds(ranges, seq)]

    def _note_closed(self, description: str) -> None:
        """Say once what hides bodies: the chain goes over their commitments and is still walked."""
        if description not in self._closed:
            self._closed.add(description)
            self._note(None, description)

    def _note(self, seq: int | None, description: str) -> None:
        self._verdict.note([Fault(self._span.session_id, seq, description)])
