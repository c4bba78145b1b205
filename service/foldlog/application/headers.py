"""Request headers: which one is in force, and whether and why another is owed."""

from __future__ import annotations

from dataclasses import dataclass

from foldlog.application import decisions
from foldlog.application.decisions import Guard
from foldlog.application.domain import Answered, RequestKey, RowSpec, Session, build
from foldlog.application.fold import EventRef, Passed, RowRef
from foldlog.application.incoming import judge_header, require_size
from foldlog.application.kept import Kept
from foldlog.application.lane import Decided, Lane, Write
from foldlog.application.readers import Workers
from foldlog.application.reading import Reading
from foldlog.application.texts import Cut, cut
from foldlog.application.writing import Writing
from foldlog.codec import header_from_proto
from foldlog.core.errors import InvalidFieldError, TooLargeError
from foldlog.core.event import EventType
from foldlog.core.header import HeaderReason, reason_to_write
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import EventBody, RequestHeader

CACHE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class InForce:
    """The header in force at a point of a log, if the log has one there."""

    version: int
    place: EventRef | None = None
    header: RequestHeader | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Why a header was written, or None; the seq of the one in force; and next_seq."""

    reason: HeaderReason | None
    seq: int
    next_seq: int


KeptHeaders = Kept[RowRef, RequestHeader]


def kept_headers() -> KeptHeaders:
    """Return room for headers by row."""
    return Kept(CACHE_BYTES, lambda header: header.ByteSize())


class HeaderCache:
    """Headers by their rows, read once. Not to be changed by those who get them."""

    def __init__(self, reading: Reading, kept: KeptHeaders) -> None:
        self._reading = reading
        self._held = kept

    async def at(self, place: EventRef) -> RequestHeader:
        """Return the header that a fold points to."""
        header = self._held.get(place.row)
        if header is None:
            header = await self._reading.header_at(place)
            self._held.keep(place.row, header)
        return header


class Headers:
    """Records headers where one is owed."""

    def __init__(
        self, cache: HeaderCache, writing: Writing, workers: Workers, limits: Limits
    ) -> None:
        self._cache = cache
        self._workers = workers
        self._writing = writing
        self._limits = limits

    def judge(self, header: RequestHeader) -> None:
        """Raise InvalidFieldError or TooLargeError for a header that no log may hold."""
        require_size("header", header.ByteSize(), self._limits.event_bytes)
        try:
            given = RequestHeader()
            given.CopyFrom(header)
            given.ClearField("reason")  # the service chooses it
            judge_header(given, self._limits)
        except (InvalidFieldError, TooLargeError) as error:
            raise error.within("header") from None

    async def in_force(self, lane: Lane) -> InForce:
        """Return the header in force at a lane's head, which stands still meanwhile.

        To be awaited by what prepares a write, as the last thing it waits for.
        """
        while True:
            fold = (await lane.current_fold()).sound()
            version, place = lane.head.version, fold.header
            header = None if place is None else await self._cache.at(place)
            if lane.head.version == version:
                return InForce(version, place, header)

    async def record(
        self,
        session_id: str,
        request_id: str,
        header: RequestHeader,
        guard: Guard,
        skip_unchanged: bool,
    ) -> Recorded:
        """Append a header if one is owed."""
        weight = header.ByteSize()
        request, found = await self._workers.run(
            weight, self._asked, request_id, header, skip_unchanged
        )

        async def prepare(lane: Lane) -> InForce:
            decisions.require_session(await lane.refresh(), session_id)
            in_force = await self.in_force(lane)
            given = lane.head.copy(), in_force.header, header, skip_unchanged
            if found is None or await self._workers.run(weight, owed, *given) is None:
                return await self.in_force(lane)
            for content in found.contents:
                await lane.services.objects.put_bytes(content)
            return await self.in_force(lane)

        def decide(head: Session, in_force: InForce) -> Decided:
            decisions.require_session(head, session_id)
            decisions.require_guard(head, Guard(None, guard.writer_epoch))
            reason = owed(head, in_force.header, header, skip_unchanged)
            if reason is None:
                assert in_force.place is not None
                return Decided(Recorded(None, in_force.place.seq, head.next_seq))
            decisions.require_guard(head, guard)
            call = self._writing.call(request)
            events = build(head, [_row(header_body(header, reason))], call.now_ns, request)
            seq = events[0].envelope.seq
            row = RowRef(head.id, events[0].originator_version)
            passed = [Passed(seq, EventType.REQUEST_HEADER, row)]
            return Decided(Recorded(reason, seq, seq + 1), events, passed)

        async def replay(lane: Lane, answered: Answered) -> Recorded:
            (row,) = await self._writing.answered_rows(lane, answered)
            reason = HeaderReason(EventBody.FromString(row.envelope.body).request_header.reason)
            return Recorded(reason, row.envelope.seq, row.envelope.seq + 1)

        write = Write(request, decide, replay, prepare, weight)
        recorded: Recorded = await self._writing.write(session_id, write)
        return recorded

    def _asked(
        self, request_id: str, header: RequestHeader, skip_unchanged: bool
    ) -> tuple[RequestKey, Cut | None]:
        """Judge a header and return the key of its call, and its large texts cut out."""
        self.judge(header)
        content = header.SerializeToString(deterministic=True)
        skip = b"skip" if skip_unchanged else b""
        request = self._writing.request(request_id, b"record_header", content, skip)
        return request, cut(header_body(header, HeaderReason.UNSPECIFIED))


def owed(
    head: Session,
    logged: RequestHeader | None,
    sent: RequestHeader,
    skip_unchanged: bool,
    epoch_has_header: bool = False,
) -> HeaderReason | None:
    """Return why a header is owed to a session's log, or None if none is."""
    return reason_to_write(
        None if logged is None else header_from_proto(logged),
        header_from_proto(sent),
        is_first_of_epoch=bool(head.epoch)
        and head.header_epoch != head.epoch
        and not epoch_has_header,
        skip_unchanged=skip_unchanged,
    )


def _row(body: bytes) -> RowSpec:
    found = cut(body)
    envelope = Envelope(header_texts=None if found is None else found.texts)
    body = body if found is None else found.body
    return RowSpec(Session.Event, body, EventType.REQUEST_HEADER, envelope=envelope)


def header_body(header: RequestHeader, reason: HeaderReason) -> bytes:
    """Return the body of the event that records a header, all else kept as it was sent."""
    body = EventBody(request_header=header)
    body.request_header.reason = int(reason)  # type: ignore[assignment]
    return body.SerializeToString(deterministic=True)
