"""What stored rows hold, read anew each time: for those who must not trust a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from foldlog.application.bodies import folded
from foldlog.application.fold import EventRef, Live, RowRef
from foldlog.application.requests import encoded_folded
from foldlog.application.rows import Row, RowReader, header_of
from foldlog.codec import header_from_proto
from foldlog.core.errors import HistoryDroppedError
from foldlog.core.header import Header
from foldlog.v1.event_pb2 import EventBody

CHUNK = 200


class Contents:
    """Reads messages and headers from stored rows, none of them kept. Blocking."""

    def __init__(self, reader: RowReader, reader_id: UUID, whole_from_seq: int) -> None:
        self._reader = reader
        self._reader_id = reader_id
        self._whole_from_seq = whole_from_seq

    def folded(self, entries: Sequence[Live]) -> Iterator[bytes]:
        """Yield the entries' encoded FoldedMessages in order.

        Raises HistoryDroppedError or EventCorruptError at the first that cannot be read.
        """
        for start in range(0, len(entries), CHUNK):
            part = entries[start : start + CHUNK]
            found = self._rows(part)
            for entry in part:
                row = found[entry.row]
                if self._is_gone(row):
                    raise HistoryDroppedError(seq=entry.seq, whole_from_seq=self._whole_from_seq)
                yield folded(row.envelope)

    def _rows(self, entries: Sequence[Live]) -> dict[RowRef, Row]:
        wanted: dict[UUID, list[int]] = {}
        for entry in entries:
            wanted.setdefault(entry.row.aggregate_id, []).append(entry.row.version)
        return {
            row.ref: row
            for owner, versions in wanted.items()
            for row in self._reader.some(owner, versions)
        }

    def _is_gone(self, row: Row) -> bool:
        is_own = row.ref.aggregate_id == self._reader_id
        return not row.envelope.body or (row.envelope.dropped and is_own)

    def folded_or_none(self, entry: Live) -> bytes | None:
        """Return an entry's encoded FoldedMessage, or None if its body is gone."""
        try:
            return next(self.folded([entry]))
        except HistoryDroppedError:
            return None

    def size_bytes(self, entries: Sequence[Live]) -> int:
        """Return how much the entries add to a request's encoding, less those that are gone."""
        size = 0
        for start in range(0, len(entries), CHUNK):
            for row in self._rows(entries[start : start + CHUNK]).values():
                if not self._is_gone(row):
                    size += len(encoded_folded(folded(row.envelope)))
        return size

    def header(self, place: EventRef | None) -> Header | None:
        """Return the header at a place; of no place none."""
        if place is None:
            return None
        (row,) = self._reader.some(place.row.aggregate_id, [place.row.version])
        return header_from_proto(header_of(row, self._reader))

    def body(self, ref: RowRef) -> EventBody:
        """Return the body of an event's row."""
        (row,) = self._reader.some(ref.aggregate_id, [ref.version])
        return EventBody.FromString(row.envelope.body)
