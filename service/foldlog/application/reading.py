"""The calls that read: heads, events, folds, lineage, differences, chains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from foldlog.application import decisions
from foldlog.application.bodies import Bodies, kept_bodies, message_of
from foldlog.application.domain import Segment, Session
from foldlog.application.fold import EventRef, Fold, Live, Marks, RowRef
from foldlog.application.history import History, spans_of
from foldlog.application.lane import Lane, Services
from foldlog.application.lanes import TURN_ENTRIES, Lanes
from foldlog.application.readers import EVENT_BYTES, HEAVY_BYTES
from foldlog.application.rows import Row, header_of, request_next_seq
from foldlog.core.errors import (
    EventCorruptError,
    HeaderMissingError,
    HistoryDroppedError,
    SessionDeletedError,
)
from foldlog.core.event import SURFACE_TYPES
from foldlog.core.invariant import CheckOptions, messages_equal
from foldlog.core.message import Message
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import RequestHeader

CHUNK_MESSAGES = 500
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold, and the next_seq it is valid for."""

    session_id: str
    fold: Fold
    next_seq: int
    whole_from_seq: int


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as it is stored, and why it does not count if it does not."""

    envelope: Envelope
    shadowed_by: int | None
    undone_by: int | None


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events. `next_from` is the seq the next page begins at, or None on the last."""

    events: list[Stored]
    next_seq: int
    next_from: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Two folds: how much is common, and the entries after it."""

    common_count: int
    left: Sequence[Live]
    right: Sequence[Live]
    shared_seq: int | None
    left_next_seq: int
    right_next_seq: int


class Reading:
    """Answers from folds and rows."""

    def __init__(
        self, services: Services, lanes: Lanes, bodies: Bodies, limits: Limits, tenant: str
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._bodies = bodies
        self._limits = limits
        self._tenant = tenant

    def anew(self) -> Reading:
        """Return a reading of stored rows that has kept nothing of them yet.

        Of folds only those that are asked for as independent are made from rows.
        """
        services = replace(self._services, history=self._services.history.anew())
        bodies = Bodies(services.history.reader, kept_bodies(0))
        return Reading(services, self._lanes, bodies, self._limits, self._tenant)

    async def head(self, session_id: str) -> Session:
        """Return a session's head as it is now: it does not move on."""
        async with self._lanes.use(self._tenant, session_id) as lane:
            head = await lane.refresh()
            decisions.require_session(head, session_id)
            return head.copy()

    async def require_unerased(self, session_id: str) -> None:
        """Raise SessionDeletedError if a session was erased while it was read."""
        async with self._lanes.use(self._tenant, session_id) as lane:
            if (await lane.refresh()).is_erased:
                raise SessionDeletedError(session_id=session_id)

    @asynccontextmanager
    async def unless_erased(self, session_id: str = "") -> AsyncIterator[None]:
        """Raise SessionDeletedError where what seems damaged is being erased just now.

        It is of the session given, or of the one that the damage names.
        """
        try:
            yield
        except (EventCorruptError, HistoryDroppedError) as error:
            if named := session_id or str(error.facts.get("session_id", "")):
                await self.require_unerased(named)
            raise

    async def fold(
        self,
        session_id: str,
        at_seq: int | None = None,
        min_next_seq: int | None = None,
        independent: bool = False,
        tolerant: bool = False,
        for_messages: bool = False,
    ) -> Folded:
        """Return the fold now or after a seq; `independent` makes it anew from every stored row.

        `for_messages` tells that its messages are asked for next.

        Raises EventCorruptError if an event it needs is damaged, unless `tolerant`.
        """
        async with (
            self.unless_erased(session_id),
            self._lanes.use(self._tenant, session_id) as lane,
        ):
            head = await lane.refresh(min_next_seq)
            decisions.require_session(head, session_id)
            if min_next_seq is not None and at_seq is None and head.next_seq < min_next_seq:
                decisions.require_seq(head, min_next_seq - 1, "min_next_seq")
            if at_seq is not None:
                decisions.require_seq(head, at_seq, "at_seq")
            fold = await self._fold(lane, at_seq, independent, for_messages)
            while not fold.advance(TURN_ENTRIES):
                await asyncio.sleep(0)
            if not tolerant:
                fold.sound()
            next_seq = fold.next_seq if at_seq is None else at_seq + 1
            return Folded(session_id, fold, next_seq, head.whole_from_seq)

    async def _fold(
        self, lane: Lane, at_seq: int | None, independent: bool, for_messages: bool
    ) -> Fold:
        history, readers = self._services.history, self._services.readers
        head = lane.head.copy()  # the lane goes on while we wait
        if independent:
            spans = spans_of(head)
            if at_seq is not None:
                spans = await readers.run(history.reader.cut, spans, at_seq)
            return await readers.run(_independent, history, head, spans)
        if at_seq is None:
            return await lane.current_fold(head.next_seq, for_messages)
        return await lane.fold_at(head, at_seq)

    async def messages(
        self, entries: Sequence[Live], *, chunk: int = CHUNK_MESSAGES
    ) -> AsyncIterator[list[bytes]]:
        """Yield the entries' encoded FoldedMessages in pieces bounded by count and bytes."""
        for start in range(0, len(entries), chunk):
            part = entries[start : start + chunk]
            found = self._bodies.known(part)
            if found is None:
                async with self.unless_erased():
                    found = await self._read_bodies(part)
            for piece in _pieces(found, min(CHUNK_BYTES, self._limits.page_bytes)):
                yield piece
            await asyncio.sleep(0)

    async def _read_bodies(self, entries: Sequence[Live]) -> list[bytes]:
        fresh = await self._services.readers.run(self._bodies.read, entries)
        found = []
        missing = []
        for entry in entries:
            encoded = fresh.get(entry.row) or self._bodies.get(entry.row)
            if encoded is None:
                missing.append(entry)
            else:
                found.append(encoded)
        if missing:  # forgotten between the look and the read
            return await self._read_bodies(entries)
        for ref, encoded in fresh.items():
            self._bodies.keep(ref, encoded)
        return found

    async def contents(self, entries: Sequence[Live]) -> list[Message]:
        """Return the entries' messages, decoded."""
        decoded: list[Message] = []
        async for piece in self.messages(entries):
            weight = sum(len(encoded) + EVENT_BYTES for encoded in piece)
            decoded += await self._services.workers.run(weight, _messages_of, piece)
        return decoded

    async def header(self, session_id: str, at_seq: int | None) -> tuple[RequestHeader, int, int]:
        """Return (header, its seq, next_seq)."""
        folded = await self.fold(session_id, at_seq)
        ref = folded.fold.header
        if ref is None:
            raise HeaderMissingError(session_id=session_id)
        return await self.header_at(ref), ref.seq, folded.next_seq

    async def header_at(self, ref: EventRef) -> RequestHeader:
        """Return the header that a fold points to."""
        return await self._services.readers.run(self._header, ref.row)

    def _header(self, ref: RowRef) -> RequestHeader:
        reader = self._services.history.reader
        (row,) = reader.some(ref.aggregate_id, [ref.version])
        return header_of(row, reader)

    async def events(
        self, session_id: str, from_seq: int, page_size: int, types: frozenset[int] = frozenset()
    ) -> EventPage:
        """Return a page of events from a seq, each marked."""
        folded = await self.fold(session_id, tolerant=True)
        marks = Marks(folded.fold)
        async with self._lanes.use(self._tenant, session_id) as lane:
            spans = spans_of(lane.head)
        found, next_from = await self._services.readers.run(
            self._page, spans, from_seq, page_size, types, folded.next_seq
        )
        stored = await self._services.readers.run(_all_marked, marks, found)
        return EventPage(stored, folded.next_seq, next_from)

    def _page(
        self,
        spans: Sequence[Segment],
        from_seq: int,
        page_size: int,
        types: frozenset[int],
        next_seq: int,
    ) -> tuple[list[Envelope], int | None]:
        found: list[Envelope] = []
        size = looked_at = 0
        for envelope in self.walk_from(spans, from_seq):
            if envelope.seq >= next_seq:
                break
            if len(found) >= page_size or size >= self._limits.page_bytes or looked_at >= 20_000:
                return found, envelope.seq
            looked_at += 1
            if types and envelope.type not in types:
                continue
            size += envelope.ByteSize()
            if found and size > self._limits.page_bytes:
                return found, envelope.seq
            found.append(envelope)
        return found, None

    def walk_from(
        self, spans: Sequence[Segment], from_seq: int, page_bytes: int | None = None
    ) -> Iterator[Envelope]:
        """Yield the envelopes of events from a seq on, through a lineage. Blocking."""
        reader = self._services.history.reader
        for index, span in enumerate(spans):
            if span.to_seq < from_seq:
                continue
            after = reader.version_up_to(span, from_seq - 1)
            for row in reader.walk(spans, index, after, page_bytes):
                if row.is_event and row.envelope.seq >= from_seq:
                    yield _as_seen(reader.whole(row.sound()), spans)
            return

    async def lineage(self, session_id: str) -> tuple[list[tuple[str, int]], int]:
        """Return ([(session id, last seq shared)], the nearest ancestor first; next_seq)."""
        head = await self.head(session_id)
        ancestors = []
        walked: Session | None = head
        while walked is not None and walked.parent is not None:
            parent_id, at_seq = walked.parent
            async with self._lanes.use(self._tenant, parent_id) as lane:
                walked = await lane.refresh()
            if walked.exists:  # to this caller
                ancestors.append((parent_id, at_seq))
        return ancestors, head.next_seq

    async def difference(
        self, left: str, right: str, left_at: int | None, right_at: int | None
    ) -> Difference:
        """Compare two folds by content of every role."""
        first = await self.fold(left, left_at)
        a = tuple(first.fold.surface)  # a live fold goes on while we wait
        second = await self.fold(right, right_at)
        b = tuple(second.fold.surface)
        common = await self._common(a, b)
        return Difference(
            common,
            a[common:],
            b[common:],
            await self._shared_seq(left, right, first.next_seq, second.next_seq),
            first.next_seq,
            second.next_seq,
        )

    async def _common(self, a: Sequence[Live], b: Sequence[Live]) -> int:
        shared = 0
        limit = min(len(a), len(b))
        while shared < limit and a[shared].row == b[shared].row:
            shared += 1
        while shared < limit:
            step = slice(shared, min(shared + 100, limit))
            left, right = await self.contents(a[step]), await self.contents(b[step])
            same = await self._services.workers.run(HEAVY_BYTES, _equal_count, left, right)
            shared += same
            if same < len(left):
                break
        return shared

    async def _shared_seq(
        self, left: str, right: str, left_next: int, right_next: int
    ) -> int | None:
        spans = []
        for session_id in (left, right):
            async with self._lanes.use(self._tenant, session_id) as lane:
                spans.append(spans_of(await lane.refresh()))
        shared = None
        for one, other in zip(*spans, strict=False):
            if one.aggregate_id != other.aggregate_id:
                break
            shared = min(one.to_seq, other.to_seq, left_next - 1, right_next - 1)
            if one.to_version != other.to_version:
                break
        return shared


def _independent(history: History, head: Session, spans: Sequence[Segment]) -> Fold:
    """Return a fold made from every stored row, all of them whole."""
    fold = history.fold_of(spans, independent=True)
    for live in fold.surface:
        if live.is_gone_for(head.id):
            raise HistoryDroppedError(seq=live.seq, whole_from_seq=head.whole_from_seq)
    fold.advance(len(fold.surface))
    return fold


def _equal_count(left: Sequence[Message], right: Sequence[Message]) -> int:
    """Return with how many equal messages two lists of one length begin."""
    options = CheckOptions(strict_system=True)
    for index, (one, other) in enumerate(zip(left, right, strict=True)):
        if not messages_equal(one, other, options):
            return index
    return len(left)


def _messages_of(piece: Sequence[bytes]) -> list[Message]:
    return [message_of(encoded) for encoded in piece]


def _as_seen(row: Row, spans: Sequence[Segment]) -> Envelope:
    """Return an event as a session sees it: without its body only if it dropped it itself."""
    envelope = row.envelope
    if row.ref.aggregate_id != spans[-1].aggregate_id and envelope.request_id:
        # Its call was made to an ancestor: no call to this session is a retry of it.
        envelope.noted_request_id = envelope.request_id
        envelope.request_id = ""
    if envelope.HasField("request_mark"):
        envelope.request_mark.next_seq = request_next_seq(row, spans)
    if envelope.dropped and row.ref.aggregate_id == spans[-1].aggregate_id:
        envelope.ClearField("body")
    elif envelope.body:
        envelope.dropped = False
    return envelope


def _all_marked(marks: Marks, envelopes: Sequence[Envelope]) -> list[Stored]:
    return [_marked(marks, envelope) for envelope in envelopes]


def _marked(marks: Marks, envelope: Envelope) -> Stored:
    undone = marks.undone_by(envelope.seq)
    shadowed = None
    if undone is None and envelope.type in SURFACE_TYPES:
        position = envelope.replace.start if envelope.HasField("replace") else envelope.seq
        shadowed = marks.shadowed_by(envelope.seq, position)
    return Stored(envelope, shadowed, undone)


def _pieces(found: Sequence[bytes], max_bytes: int) -> Iterator[list[bytes]]:
    piece: list[bytes] = []
    size = 0
    for encoded in found:
        if piece and size + len(encoded) > max_bytes:
            yield piece
            piece, size = [], 0
        piece.append(encoded)
        size += len(encoded)
    if piece:
        yield piece
