"""Folded messages as the wire wants them: read once, kept within a bound, sent without decoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from foldlog.application.fold import Live, RowRef
from foldlog.application.kept import Kept
from foldlog.application.rows import Row, RowReader
from foldlog.codec import message_from_proto
from foldlog.core.errors import EventCorruptError
from foldlog.core.message import Message
from foldlog.internal.v1.raw_pb2 import RawEventBody, RawFoldedMessage
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.v1.service_pb2 import FoldedMessage


def folded(envelope: Envelope) -> bytes:
    """Return the encoded FoldedMessage of a surface event's envelope."""
    body = RawEventBody.FromString(envelope.body)
    position = envelope.replace.start if envelope.HasField("replace") else envelope.seq
    message = RawFoldedMessage(seq=envelope.seq, position=position, message=body.message)
    message.time.seconds, message.time.nanos = envelope.time_s, envelope.time_ns
    if body.HasField("group"):
        message.group = body.group
    return message.SerializeToString()


def message_of(encoded: bytes) -> Message:
    """Return the message of an encoded FoldedMessage."""
    return message_from_proto(FoldedMessage.FromString(encoded).message)


KEPT_BYTES = 330  # what one costs beside its bytes, about

KeptBodies = Kept[RowRef, bytes]


def kept_bodies(max_bytes: int) -> KeptBodies:
    """Return room for encoded FoldedMessages by row."""
    return Kept(max_bytes, lambda encoded: len(encoded) + KEPT_BYTES)


class Bodies:
    """Encoded FoldedMessages by row, read once.

    Reading is blocking, looking is not.
    """

    def __init__(self, reader: RowReader, kept: KeptBodies) -> None:
        self._reader = reader
        self._held = kept

    def keep(self, ref: RowRef, encoded: bytes) -> None:
        """Keep a message, as long as there is room."""
        self._held.keep(ref, encoded)

    def forget(self, refs: Iterable[RowRef]) -> None:
        """Forget messages whose rows were dropped."""
        for ref in refs:
            self._held.forget(ref)

    def forget_session(self, aggregate_id: UUID) -> None:
        """Forget the messages of a session that was erased."""
        self._held.forget_all(lambda ref: ref.aggregate_id == aggregate_id)

    def get(self, ref: RowRef) -> bytes | None:
        """Return a message if it is kept."""
        return self._held.get(ref)

    def known(self, entries: Sequence[Live]) -> list[bytes] | None:
        """Return the entries' messages if all are kept, else None."""
        found = []
        for entry in entries:
            encoded = self._held.get(entry.row)
            if encoded is None:
                return None
            found.append(encoded)
        return found

    def read(self, entries: Sequence[Live]) -> dict[RowRef, bytes]:
        """Read the entries' messages that are not kept. Blocking, changes nothing."""
        wanted: dict[UUID, list[int]] = {}
        for entry in entries:
            if entry.row not in self._held:
                wanted.setdefault(entry.row.aggregate_id, []).append(entry.row.version)
        return dict(self._read(wanted))

    def _read(self, wanted: dict[UUID, list[int]]) -> Iterator[tuple[RowRef, bytes]]:
        for aggregate_id, versions in wanted.items():
            for row in self._reader.some(aggregate_id, versions):
                _require_body(row, self._reader)
                yield row.ref, folded(row.envelope)


def _require_body(row: Row, reader: RowReader) -> None:
    if not row.envelope.body:
        session_id, _ = reader.origin(row.ref.aggregate_id)
        raise EventCorruptError(
            session_id=session_id, seq=row.envelope.seq, damage="it was dropped"
        )
