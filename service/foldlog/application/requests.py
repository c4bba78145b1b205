"""Requests as a log gives them: built at any seq, on any fork, and hashed message by message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from foldlog.application import decisions
from foldlog.application.domain import Segment, Session
from foldlog.application.fold import EventRef, Fold, Live, RowRef
from foldlog.application.headers import HeaderCache
from foldlog.application.history import spans_of
from foldlog.application.lane import Lane, Services
from foldlog.application.lanes import Lanes
from foldlog.application.readers import EVENT_BYTES
from foldlog.application.reading import Reading
from foldlog.application.rows import Row, request_next_seq
from foldlog.codec import header_from_proto, message_from_proto
from foldlog.core.errors import HeaderMissingError, InvalidFieldError
from foldlog.core.event import EventType
from foldlog.core.request import RequestHash, encoded_message
from foldlog.v1.event_pb2 import RequestHeader
from foldlog.v1.service_pb2 import FoldedMessage

PIECE = 100


@dataclass(frozen=True, slots=True)
class State:
    """What a request is made of, at a point of a log. `digest` is (count, digest, leading)."""

    place: EventRef
    header: RequestHeader
    entries: tuple[Live, ...]
    digest: tuple[int, bytes, bool]
    next_seq: int


@dataclass(frozen=True, slots=True)
class Built:
    """A request as the log gives it. Its messages are read through `reading`."""

    state: State
    encoding_sha256: bytes
    reading: Reading
    step_seq: int | None = None

    def messages(self, skip: int = 0) -> AsyncIterator[list[bytes]]:
        """Yield the encoded FoldedMessages in pieces, but for the first ones."""
        return self.reading.messages(self.state.entries[skip:])


@dataclass(frozen=True, slots=True)
class _Hashed:
    """How far a session's requests were hashed."""

    header: RowRef
    entries: tuple[Live, ...]
    hash: RequestHash


class Hashes:
    """The newest hash of each session: a request that extends it costs what is new in it.

    It is forgotten with the session's lane, whose entries it holds.
    """

    def __init__(self) -> None:
        self._held: WeakKeyDictionary[Lane, _Hashed] = WeakKeyDictionary()

    def start(self, lane: Lane, state: State, most: int | None = None) -> RequestHash:
        """Return a hash to go on from, over at most so many of a request's first messages."""
        held = self._held.get(lane)
        if held is not None and held.header == state.place.row:
            count = held.hash.count
            if (most is None or count <= most) and state.entries[:count] == held.entries:
                return held.hash.copy()
        return RequestHash(header_from_proto(state.header))

    def keep(self, lane: Lane, state: State, hashed: RequestHash) -> None:
        """Keep the hash of a request whose events are all stored."""
        self._held[lane] = _Hashed(state.place.row, state.entries, hashed)


class Requests:
    """Builds requests."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        reading: Reading,
        headers: HeaderCache,
        tenant: str,
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._reading = reading
        self._headers = headers
        self._tenant = tenant
        self.hashes = Hashes()

    async def build(
        self,
        session_id: str,
        at_seq: int | None = None,
        step_seq: int | None = None,
        independent: bool = False,
    ) -> Built:
        """Return the request now, after a seq or of a step. Raises HeaderMissingError."""
        reading = self._reading.anew() if independent else self._reading
        if step_seq is not None:
            at_seq = await self._request_seq(session_id, step_seq)
        folded = await reading.fold(session_id, at_seq, independent=independent)
        anew = reading if independent else None
        state = await self.state(folded.fold, folded.next_seq, session_id, anew)
        async with self._lanes.use(self._tenant, session_id) as lane:
            if independent:
                hashed = RequestHash(header_from_proto(state.header))
            else:
                hashed = self.hashes.start(lane, state)
            await self.grow(hashed, state.entries, reading=reading)
            if at_seq is None and not independent:
                self.hashes.keep(lane, state, hashed)
        return Built(state, hashed.digest, reading, step_seq)

    async def state(
        self, fold: Fold, next_seq: int, session_id: str, anew: Reading | None = None
    ) -> State:
        """Return what the request of a fold is made of. Raises HeaderMissingError.

        The header is one that is kept, unless it is to be read anew.
        """
        place, entries, digest = fold.header, tuple(fold.surface), fold.digest()
        if place is None:
            raise HeaderMissingError(session_id=session_id)
        header = await (self._headers.at(place) if anew is None else anew.header_at(place))
        return State(place, header, entries, digest, next_seq)

    async def grow(
        self,
        hashed: RequestHash,
        entries: Sequence[Live],
        new: Mapping[RowRef, bytes] | None = None,
        reading: Reading | None = None,
    ) -> None:
        """Let a hash take in the entries that it lacks; `new` has those not stored yet, encoded."""
        fresh = new or {}
        for start in range(hashed.count, len(entries), PIECE):
            part = entries[start : start + PIECE]
            stored = [entry for entry in part if entry.row not in fresh]
            pieces = (reading or self._reading).messages(stored, chunk=PIECE)
            read = [each async for piece in pieces for each in piece]
            weight = sum(map(len, read)) + len(part) * EVENT_BYTES
            await self._services.workers.run(weight, _add, hashed, part, fresh, read)

    async def _request_seq(self, session_id: str, step_seq: int) -> int:
        """Return the seq after which a step's request is built."""
        head = await self._reading.head(session_id)
        row = await self.step_row(head, step_seq, "step_seq")
        return request_next_seq(row, spans_of(head)) - 1

    async def step_row(self, head: Session, seq: int, field: str) -> Row:
        """Return the row of a step_start. Raises InvalidFieldError if none stands at the seq."""
        if seq < 0:
            raise InvalidFieldError.of(field, f"{seq} is below 0")
        decisions.require_seq(head, seq, field)
        row = await self._services.readers.run(self._row_at, spans_of(head), seq)
        if row is None or row.envelope.type != EventType.STEP_START:
            raise InvalidFieldError.of(field, f"no step_start stands at {seq}")
        return row

    def _row_at(self, spans: Sequence[Segment], seq: int) -> Row | None:
        reader = self._services.history.reader
        for span in spans:
            if seq > span.to_seq:
                continue
            version = reader.version_up_to(span, seq)
            while version:
                (row,) = reader.some(span.aggregate_id, [version])
                if row.is_event:
                    return row if row.envelope.seq == seq else None
                version -= 1  # a fact carries the next_seq at its time
            return None
        return None


def _add(
    hashed: RequestHash,
    entries: Sequence[Live],
    fresh: Mapping[RowRef, bytes],
    read: Iterable[bytes],
) -> None:
    """Add entries to a hash: those not stored yet as given, the others as read."""
    stored = iter(read)
    for entry in entries:
        known = fresh.get(entry.row)
        hashed.add(encoded_folded(next(stored)) if known is None else known)


def encoded_folded(encoded: bytes) -> bytes:
    """Return what an encoded FoldedMessage adds to a request's encoding."""
    folded = FoldedMessage.FromString(encoded)
    group = folded.group if folded.HasField("group") else None
    return encoded_message(message_from_proto(folded.message), group)
