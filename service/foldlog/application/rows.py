"""Reading stored rows: decoded, checked against their commitments, walked through a lineage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from google.protobuf.message import DecodeError

from foldlog.application.domain import NO_KEY, Segment, Session
from foldlog.application.fold import Live, Passed, RowRef
from foldlog.application.kept import SharedKept
from foldlog.application.messages import call_ids_of, digest_of
from foldlog.application.seal import commitment
from foldlog.application.texts import KeptTexts, TextLostError, Texts, kept_texts, whole
from foldlog.compression import PackedError, is_packed, unpacked
from foldlog.core.errors import EncryptionKeyMissingError, EventCorruptError
from foldlog.core.event import SURFACE_TYPES, EventType, PositionRange
from foldlog.internal.v1.storage_pb2 import Envelope, Origin, StoredFact
from foldlog.persistence.rows import NO_TOPIC, row_id
from foldlog.persistence.store import Store
from foldlog.v1.event_pb2 import EventBody, RequestHeader
from foldlog.v1.message_pb2 import Message

ORIGINS = 10_000  # sessions whose id and key are kept
SHORT_PAGE = 32
PAGE = 500
PAGE_BYTES = 16 * 1024 * 1024
CHAIN_BYTES = 32
UNKNOWN_DIGEST = bytes(32)


class Row(NamedTuple):
    """A stored row. `damage` says what is wrong with it, if anything is.

    A damaged row whose envelope decodes has it; for another one the envelope holds the seq it must
    have had, and no more.
    """

    ref: RowRef
    topic: str
    envelope: Envelope
    damage: EventCorruptError | None = None

    @property
    def is_legible(self) -> bool:
        """Whether its envelope decodes."""
        return len(self.envelope.chain) == CHAIN_BYTES

    def sound(self) -> Row:
        """Return the row. Raises EventCorruptError if it is damaged."""
        if self.damage is not None:
            raise self.damage
        return self

    @property
    def is_event(self) -> bool:
        """Whether it is an event of the log, not a fact."""
        return self.topic == Session.Event.TOPIC


def live_of(message: Message, seq: int, position: int, row: RowRef) -> Live:
    """Return what the fold keeps of a surface event."""
    return Live(
        position=position,
        seq=seq,
        row=row,
        role=message.role,
        digest=digest_of(message),
        call_ids=call_ids_of(message),
        tool_call_id=message.tool_call_id if message.HasField("tool_call_id") else None,
    )


def passed(row: Row) -> Passed:
    """Return an event's row as a fold takes it in, with its damage if it needs the body."""
    envelope = row.envelope
    needs_body = envelope.type in SURFACE_TYPES or envelope.type == EventType.REWIND
    if row.damage is not None and (needs_body or not row.is_legible):
        return _damaged(row, row.damage)
    range_ = None
    if envelope.HasField("replace"):
        range_ = PositionRange(envelope.replace.start, envelope.replace.stop)
    live = None
    rewind_to = None
    if envelope.type in SURFACE_TYPES:
        live = _live(row, envelope.seq if range_ is None else range_.start)
    elif envelope.type == EventType.REWIND:
        rewind_to = EventBody.FromString(envelope.body).rewind.to_seq
    return Passed(envelope.seq, envelope.type, row.ref, live, range_, rewind_to)


def _damaged(row: Row, damage: EventCorruptError) -> Passed:
    envelope = row.envelope
    if not row.is_legible or envelope.type not in SURFACE_TYPES:
        return Passed(envelope.seq, 0, row.ref, damage=damage)
    range_ = None
    if envelope.HasField("replace"):
        range_ = PositionRange(envelope.replace.start, envelope.replace.stop)
    position = envelope.seq if range_ is None else range_.start
    live = Live(position, envelope.seq, row.ref, 0, UNKNOWN_DIGEST, damage=damage)
    return Passed(envelope.seq, envelope.type, row.ref, live, range_)


def _live(row: Row, position: int) -> Live:
    envelope = row.envelope
    if not envelope.body:
        return Live(position, envelope.seq, row.ref, 0, b"", is_dropped=True)
    message = EventBody.FromString(envelope.body).message
    live = live_of(message, envelope.seq, position, row.ref)
    return live._replace(is_dropped=True) if envelope.dropped else live


def request_next_seq(step: Row, spans: Sequence[Segment]) -> int:
    """Return where the request of a step is built, as a session sees it whose lineage is given.

    That is after the call that wrote the step_start; after the step_start itself where the row does
    not say. A fork that was cut within the call has the part before the cut.
    """
    mark = step.envelope.request_mark.next_seq or step.envelope.seq + 1
    for span in spans[:-1]:
        if span.aggregate_id == step.ref.aggregate_id:
            return min(mark, span.to_seq + 1)
    return mark


def header_of(row: Row, reader: RowReader) -> RequestHeader:
    """Return the request header of an event's row."""
    return EventBody.FromString(reader.whole(row).envelope.body).request_header


# In place of the key of a session that was erased: nothing is left to hold its bodies to.
ERASED_KEY = b"erased"


def is_erased_first(first: Envelope) -> bool:
    """Tell whether a session's first row has lost its body, which is so once it is erased only."""
    return first.dropped and not first.body and not first.encrypted_body


def is_whole(envelope: Envelope, key: bytes) -> bool:
    """Return whether a body is the one that was committed to; a dropped message's may be gone."""
    if key == ERASED_KEY:
        return True
    if envelope.dropped and not envelope.body and envelope.type in SURFACE_TYPES:
        return True
    return commitment(key, envelope.body) == envelope.commitment


def unpack(envelope: Envelope) -> str:
    """Unpack a body that is packed; return what is wrong with it, or nothing."""
    try:
        if is_packed(envelope.body):
            envelope.body = unpacked(envelope.body)
    except PackedError as error:
        return f"it {error}"
    return ""


def still_encrypted(envelope: Envelope, session_id: str) -> EventCorruptError:
    """Return why a row's body was not decrypted when it was read."""
    seq, key_id = envelope.seq, envelope.still_encrypted.missing_key_id
    if envelope.HasField("still_encrypted") and not key_id:
        return EventCorruptError(session_id=session_id, seq=seq, damage="it does not decrypt")
    damage = f"it is encrypted under the master key {key_id!r}, which the service does not have"
    if not key_id:
        damage = "it is encrypted, and the service has no master keys"
    return EncryptionKeyMissingError(session_id=session_id, seq=seq, damage=damage, key_id=key_id)


def _size(page: Sequence[StoredEvent]) -> int:
    return sum(len(stored.state) for stored in page)


def _legible(state: bytes) -> Envelope | None:
    """Return a state's envelope, or None if it is none."""
    try:
        envelope = Envelope.FromString(state)
    except DecodeError:
        return None
    return envelope if len(envelope.chain) == CHAIN_BYTES else None


@dataclass(frozen=True, slots=True)
class KeptByRows:
    """What the readers of all tenants keep in common."""

    texts: KeptTexts = field(default_factory=kept_texts)
    origins: SharedKept[UUID, tuple[str, bytes]] = field(
        default_factory=lambda: SharedKept(ORIGINS, lambda _: 1)
    )


class RowReader:
    """Reads rows of any session, damaged ones with their damage.

    Blocking: called on reader threads.
    """

    def __init__(self, store: Store, tenant: str, kept: KeptByRows) -> None:
        self._store = store
        self._tenant = tenant
        self._recorder = store.recorder
        self.texts = Texts(store.objects, tenant, kept.texts)
        self._origins = kept.origins

    def anew(self) -> RowReader:
        """Return a reader that has kept nothing yet, for those who must not trust a cache."""
        return RowReader(self._store, self._tenant, KeptByRows())

    def origin(self, aggregate_id: UUID) -> tuple[str, bytes]:
        """Return the session id and the commitment key of a session whose rows are read."""
        known = self._origins.get(aggregate_id)
        if known is None:
            rows = self._recorder.select_events(aggregate_id, limit=1)
            if not rows:
                raise EventCorruptError(
                    session_id=str(aggregate_id), seq=-1, damage="the first row is missing"
                )
            known = self.learn(rows[0])
        return known

    def forget(self, aggregate_id: UUID) -> None:
        """Forget the origin of a session that was erased."""
        self._origins.forget(aggregate_id)

    def learn(self, first_row: StoredEvent) -> tuple[str, bytes]:
        """Remember the origin that a session's first row holds, and return it."""
        try:
            envelope = Envelope.FromString(first_row.state)
            if envelope.encrypted_body:
                raise still_encrypted(envelope, str(first_row.originator_id))
            origin = StoredFact.FromString(envelope.body).origin
            if is_erased_first(envelope):
                origin = Origin(session_id=envelope.session_id, key=ERASED_KEY)
            elif origin.key == ERASED_KEY:
                raise DecodeError("it has no key")
        except DecodeError as error:
            raise EventCorruptError(
                session_id=str(first_row.originator_id),
                seq=-1,
                damage="the first row does not decode",
            ) from error
        found = origin.session_id, origin.key
        self._origins.forget(row_id(first_row))
        self._origins.keep(row_id(first_row), found)
        return found

    def decode(self, stored: StoredEvent, near_seq: int) -> Row:
        """Return a row, decoded and checked. `near_seq` is its seq where it does not decode."""
        aggregate_id = row_id(stored)
        ref = RowRef(aggregate_id, stored.originator_version)
        envelope = _legible(stored.state)
        if envelope is not None and envelope.encrypted_body:
            known = self._origins.get(aggregate_id)
            closed = still_encrypted(envelope, known[0] if known else str(aggregate_id))
            return Row(ref, stored.topic, envelope, closed)
        if stored.originator_version == 1:
            self.learn(stored)
        session_id, key = self.origin(aggregate_id)
        if envelope is None:
            is_lost = stored.topic == NO_TOPIC
            wrong = "its place in the database is damaged" if is_lost else "it does not decode"
            damage = EventCorruptError(session_id=session_id, seq=near_seq, damage=wrong)
            # What is lost may have been an event, and is never passed over.
            topic = Session.Event.TOPIC if is_lost else stored.topic
            return Row(ref, topic, Envelope(seq=max(near_seq, 0)), damage)
        wrong = unpack(envelope)
        if stored.topic == Session.Erased.TOPIC:
            key = NO_KEY
        elif envelope.dropped and not envelope.body and envelope.type not in SURFACE_TYPES:
            # Only an erasure takes these, and perhaps it came after the key was read.
            self.forget(aggregate_id)
            session_id, key = self.origin(aggregate_id)
        if not wrong and not is_whole(envelope, key):
            wrong = "it does not match its commitment"
        elif not wrong and envelope.type and stored.topic != Session.Event.TOPIC:
            wrong = "an event stands there as a fact"
        if not wrong:
            return Row(ref, stored.topic, envelope)
        damage = EventCorruptError(session_id=session_id, seq=envelope.seq, damage=wrong)
        return Row(ref, stored.topic, envelope, damage)

    def whole(self, row: Row) -> Row:
        """Return a row as its event was sent: a header with the large texts that it refers to.

        One that is erased has none, even where they are kept for others. Raises EventCorruptError
        if one of them is lost.
        """
        if not row.envelope.HasField("header_texts"):
            return row
        envelope = Envelope()
        envelope.CopyFrom(row.sound().envelope)
        envelope.ClearField("header_texts")
        if not envelope.body:
            return row._replace(envelope=envelope)
        try:
            envelope.body = whole(envelope.body, row.envelope.header_texts, self.texts.get)
        except TextLostError as error:
            return self._erased_meanwhile(row, error)
        return row._replace(envelope=envelope)

    def _erased_meanwhile(self, row: Row, error: TextLostError) -> Row:
        """Return a row whose text is lost if it was erased since it was read."""
        if self.is_stripped(row.ref):
            (now,) = self.some(row.ref.aggregate_id, [row.ref.version])
            return self.whole(now)
        session_id, _ = self.origin(row.ref.aggregate_id)
        damage = "a text of its header is lost or damaged"
        raise EventCorruptError(
            session_id=session_id, seq=row.envelope.seq, damage=damage
        ) from error

    def is_stripped(self, ref: RowRef) -> bool:
        """Tell whether a row has lost its body by now."""
        (now,) = self.some(ref.aggregate_id, [ref.version], tolerant=True)
        return now.damage is None and not now.envelope.body

    def page(
        self,
        aggregate_id: UUID,
        after: int,
        to: int | None = None,
        limit: int = PAGE,
        max_bytes: int = PAGE_BYTES,
    ) -> list[StoredEvent]:
        """Return stored rows with after < version <= to, ascending."""
        return list(
            self._recorder.select_events(
                aggregate_id, gt=after, lte=to, limit=limit, max_bytes=max_bytes
            )
        )

    def rows(
        self,
        aggregate_id: UUID,
        after: int,
        to: int | None,
        near_seq: int = 0,
        page_bytes: int | None = None,
    ) -> Iterator[Row]:
        """Yield rows with after < version <= to, ascending, a page at a time.

        `page_bytes` bounds what one who does not read on keeps in memory.
        """
        if to is not None and after >= to:
            return
        if page_bytes is None:
            # Most often there is little or nothing: a short page needs no look at the sizes first.
            page = self._recorder.select_events(aggregate_id, gt=after, lte=to, limit=SHORT_PAGE)
            is_last = len(page) < SHORT_PAGE
        else:
            page, is_last = self.page(aggregate_id, after, to, max_bytes=page_bytes), False
        size_bytes = page_bytes or PAGE_BYTES
        while page:
            for stored in page:
                row = self.decode(stored, near_seq)
                near_seq = row.envelope.seq + row.is_event
                yield row
            after = page[-1].originator_version
            if is_last or (to is not None and after >= to):
                return
            page = self.page(aggregate_id, after, to, max_bytes=size_bytes)
            # A large row may stand behind a page that is not full.
            is_last = len(page) < PAGE and page_bytes is None and _size(page) < PAGE_BYTES // 2

    def walk(
        self,
        spans: Sequence[Segment],
        index: int = 0,
        after: int = 0,
        page_bytes: int | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of a lineage, the oldest first, from a span and a version in it on."""
        near_seq = spans[index - 1].to_seq + 1 if index else 0
        for number in range(index, len(spans)):
            span = spans[number]
            yield from self.rows(span.aggregate_id, after, span.to_version, near_seq, page_bytes)
            near_seq = span.to_seq + 1
            after = 0

    def some(
        self, aggregate_id: UUID, versions: Sequence[int], tolerant: bool = False
    ) -> Iterator[Row]:
        """Yield the rows of these versions, ascending.

        Raises EventCorruptError at a damaged one, unless `tolerant`.
        """
        ordered = sorted(versions)
        for start in range(0, len(ordered), PAGE):
            chunk = ordered[start : start + PAGE]
            found = self._recorder.select_versions(aggregate_id, chunk)
            if len(found) != len(chunk):
                lost = set(chunk) - {row.originator_version for row in found}
                session_id, _ = self.origin(aggregate_id)
                raise EventCorruptError(
                    session_id=session_id,
                    seq=-1,
                    damage=f"rows of versions {sorted(lost)} are missing",
                )
            for stored in found:
                row = self.decode(stored, -1)
                yield row if tolerant else row.sound()

    def cut(self, spans: Sequence[Segment], seq: int) -> list[Segment]:
        """Return the part of a lineage up to a seq. O(log rows) look-ups."""
        kept: list[Segment] = []
        for span in spans:
            if seq <= span.to_seq:
                version = self.version_up_to(span, seq)
                if version:
                    kept.append(replace(span, to_version=version, to_seq=seq))
                break
            kept.append(span)
        return kept

    def version_up_to(self, span: Segment, seq: int) -> int:
        """Return the newest version in a span at which no event is past a seq; 0 if there is none.

        By the runs of the session's own rows where they reach, else by binary search: seqs never
        fall from version to version, and a fact carries its next_seq.
        """
        if seq < 0:
            return 0
        if seq >= span.to_seq:
            return span.to_version
        known = span.version_of(seq)
        if known is not None:
            return known
        low, high = 0, span.to_version
        while low < high:
            middle = (low + high + 1) // 2
            if self._seq_at(span, middle) <= seq:
                low = middle
            else:
                high = middle - 1
        return low

    def _seq_at(self, span: Segment, version: int) -> int:
        """Return a row's seq; of one that does not decode, the one that those before it imply."""
        for back in range(version):
            rows = self._recorder.select_events(span.aggregate_id, gt=version - back - 1, limit=1)
            row = self.decode(rows[0], -1) if rows else None
            if row is not None and row.is_legible:
                return row.envelope.seq + back
        return 0
