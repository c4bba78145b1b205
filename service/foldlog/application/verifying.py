"""Every recorded request made again from the stored rows, outside of every cache."""

from __future__ import annotations

from dataclasses import dataclass

from foldlog.application.contents import Contents
from foldlog.application.domain import Session
from foldlog.application.fold import Fold, Live, RowRef
from foldlog.application.history import spans_of
from foldlog.application.lane import Services
from foldlog.application.reading import Reading
from foldlog.application.requests import encoded_folded
from foldlog.application.retrace import Retraced, Scanned, scan
from foldlog.core.errors import (
    EventCorruptError,
    FoldlogError,
    HeaderMissingError,
    InvalidFieldError,
    SeqBeyondHeadError,
)
from foldlog.core.request import RequestHash
from foldlog.v1.event_pb2 import SentRequest


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A recorded request that comes out otherwise, or for a reason not at all."""

    seq: int
    step_seq: int | None = None
    recorded_sha256: bytes = b""
    rebuilt_sha256: bytes = b""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """What making the recorded requests again came to."""

    verified_count: int
    skipped_count: int
    mismatches: list[Mismatch]
    next_seq: int


@dataclass(frozen=True, slots=True)
class _Record:
    seq: int
    sent: SentRequest


class Verifying:
    """Verifies recorded requests: one scan of the log, one look at each message per break."""

    def __init__(self, services: Services, reading: Reading) -> None:
        self._services = services
        self._reading = reading

    async def verify(self, session_id: str, from_seq: int) -> Verified:
        """Make every request recorded from a seq on again, and compare."""
        if from_seq < 0:
            raise InvalidFieldError.of("from_seq", f"{from_seq} is below 0")
        head = await self._reading.head(session_id)
        return await self._services.readers.run(self._verify, head, from_seq)

    def _verify(self, head: Session, from_seq: int) -> Verified:
        reader = self._services.history.reader.anew()
        scanned = scan(reader, spans_of(head))
        contents = Contents(reader, head.id, head.whole_from_seq)
        places = [(seq, row) for seq, row in scanned.records if seq >= from_seq]
        records, mismatches = _read(contents, places)
        kept = [r for r in records if r.sent.encoding_sha256]
        again = _Again(scanned, contents, head.session_id)
        for record in sorted(kept, key=lambda r: r.sent.built_at_next_seq):
            found = again.compared(record)
            if found is not None:
                mismatches.append(found)
        mismatches.sort(key=lambda mismatch: mismatch.seq)
        return Verified(len(kept), len(records) - len(kept), mismatches, head.next_seq)


def _read(
    contents: Contents, places: list[tuple[int, RowRef]]
) -> tuple[list[_Record], list[Mismatch]]:
    records, damaged = [], []
    for seq, row in places:
        try:
            records.append(_Record(seq, contents.body(row).request))
        except EventCorruptError as error:
            damaged.append(Mismatch(seq, reason=error.reason))
    return records, damaged


class _Again:
    """Requests made again in the order of the places they were built at."""

    def __init__(self, scanned: Scanned, contents: Contents, session_id: str) -> None:
        self._contents = contents
        self._session_id = session_id
        self._retraced = Retraced(scanned)
        self._header: RowRef | None = None
        self._entries: tuple[Live, ...] = ()
        self._hash: RequestHash | None = None

    def compared(self, record: _Record) -> Mismatch | None:
        """Return how a record does not hold, or None if it does."""
        sent, rebuilt, reason = record.sent, b"", ""
        try:
            rebuilt = self._rebuilt(record)
        except FoldlogError as error:
            self._hash = None
            reason = error.reason
        if rebuilt == sent.encoding_sha256:
            return None
        step_seq = sent.step_seq if sent.HasField("step_seq") else None
        return Mismatch(record.seq, step_seq, sent.encoding_sha256, rebuilt, reason)

    def _rebuilt(self, record: _Record) -> bytes:
        next_seq = record.sent.built_at_next_seq
        if next_seq > record.seq:
            raise SeqBeyondHeadError(seq=next_seq - 1, next_seq=record.seq)
        return self._digest(self._retraced.move(next_seq).sound())

    def _digest(self, fold: Fold) -> bytes:
        if fold.header is None:
            raise HeaderMissingError(session_id=self._session_id)
        entries = tuple(fold.surface)
        hashed = self._hash
        extends = fold.header.row == self._header and entries[: len(self._entries)] == self._entries
        if hashed is None or not extends:
            header = self._contents.header(fold.header)
            assert header is not None
            hashed = RequestHash(header)
        self._hash = None  # what is half done when a row cannot be read is of no use
        for each in self._contents.folded(entries[hashed.count :]):
            hashed.add(encoded_folded(each))
        self._header, self._entries, self._hash = fold.header.row, entries, hashed
        return hashed.digest
