"""Watches: a session's events, or every session's, as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from eventsourcing.persistence import Notification

from foldlog import observability
from foldlog.application import decisions
from foldlog.application.domain import Segment, Session
from foldlog.application.feed import Feed
from foldlog.application.history import spans_of
from foldlog.application.lane import Lane, Services
from foldlog.application.lanes import Lanes
from foldlog.application.reading import Reading
from foldlog.application.rows import Row, RowReader
from foldlog.application.tail import TailRow
from foldlog.core.errors import EventCorruptError, InvalidFieldError, SlowReaderError
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.v1.event_pb2 import DeletedFact, Fact, HistoryDroppedFact, SeqRange

IDLE_S = 30.0
# What a watch keeps in memory while its reader does not take it.
BATCH = 200
BATCH_BYTES = 512 * 1024


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything stored when the watch began was told."""

    next_seq: int = 0
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class FeedItem:
    """A row of the feed."""

    cursor: str
    session_id: str
    envelope: Envelope
    fact: Fact | None


Watched = Envelope | CaughtUp | HistoryDroppedFact | DeletedFact


class Watching:
    """Serves watches without a thread or a connection for those that wait."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        feed: Feed,
        reading: Reading,
        lag: int,
        tenant: str,
    ) -> None:
        self._lag = lag
        self._services = services
        self._lanes = lanes
        self._feed = feed
        self._reading = reading
        self._tenant = tenant

    async def watch(self, session_id: str, from_seq: int) -> AsyncIterator[Watched]:
        """Yield a session's events from a seq on, with notices, until it is deleted.

        Raises SlowReaderError if too many were stored while the caller took one.
        """
        if from_seq < 0:
            raise InvalidFieldError.of("from_seq", f"{from_seq} is below 0")
        async with self._lanes.use(self._tenant, session_id) as lane:
            woken = asyncio.Event()
            lane.watchers.add(woken)
            observability.metrics.watch_opened()
            try:
                with self._feed.watched():
                    head = await lane.refresh()
                    decisions.require_session(head, session_id)
                    async for item in self._watch(lane, woken, from_seq):
                        self._lanes.require_shown(lane, session_id)
                        yield item
            finally:
                lane.watchers.discard(woken)
                observability.metrics.watch_closed()

    async def _watch(
        self, lane: Lane, woken: asyncio.Event, from_seq: int
    ) -> AsyncIterator[Watched]:
        head = lane.head.copy()
        version, caught_up_at, spans = head.version, head.next_seq, spans_of(head)
        if head.drop_versions:
            # Who watches again may have missed them.
            yield await self._services.readers.run(self._drops, head)
        async for batch in self._inherited_and_own(spans, from_seq):
            for envelope in batch:
                yield envelope
        yield CaughtUp(caught_up_at)
        while True:
            woken.clear()
            async for reached, topic, envelope in self._after(lane, version):
                version = reached
                if topic == Session.Event.TOPIC:
                    if envelope.seq >= from_seq:
                        stored = lane.head.next_seq
                        yield envelope
                        self._require_pace(lane.head.next_seq - stored, envelope.seq + 1)
                    continue
                notice = _notice(envelope)
                if notice is not None:
                    yield notice
                if isinstance(notice, DeletedFact):
                    return
            await self._wait(lane, woken)

    def _require_pace(self, stored_meanwhile: int, cursor: int) -> None:
        """Raise SlowReaderError if too much was stored while the caller took one element.

        How far a watch is behind says nothing of its caller: a batch of a thousand is no fault of
        the reader, and one that takes what it is given keeps nothing in memory.
        """
        if stored_meanwhile > self._lag:
            raise SlowReaderError(cursor=str(cursor))

    def _drops(self, head: Session) -> HistoryDroppedFact:
        ranges = self._services.history.dropped(head)
        return HistoryDroppedFact(
            whole_from_seq=head.whole_from_seq,
            dropped=[SeqRange(first=first, last=last) for first, last in ranges],
        )

    async def _wait(self, lane: Lane, woken: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(IDLE_S):
                await woken.wait()
        except TimeoutError:
            pass
        await lane.follow()

    async def _inherited_and_own(
        self, spans: Sequence[Segment], from_seq: int
    ) -> AsyncIterator[list[Envelope]]:
        walk = self._reading.walk_from(spans, from_seq, BATCH_BYTES)
        while batch := await self._services.readers.run(_take, walk):
            yield batch

    async def _after(self, lane: Lane, version: int) -> AsyncIterator[TailRow]:
        """Yield the rows after a version, from memory if it reaches."""
        while version < lane.head.version:
            if known := lane.tail.after(version):
                for row in known:
                    yield row
                version = known[-1].version
                continue
            rows = await self._services.readers.run(self._stored, lane, version)
            if not rows:
                return  # they are gone, which is for VerifySession to tell
            for stored in rows:
                stored.sound()
                version = stored.ref.version
                yield TailRow(version, stored.topic, stored.envelope)

    def _stored(self, lane: Lane, version: int) -> list[Row]:
        reader = self._services.history.reader
        page = reader.page(lane.id, version, lane.head.version, BATCH, BATCH_BYTES)
        return [reader.whole(reader.decode(each, -1)) for each in page]

    async def watch_all(
        self, after_cursor: str, from_now: bool
    ) -> AsyncIterator[FeedItem | CaughtUp]:
        """Yield the rows of every session after a cursor, and once that all is told."""
        after_id = await self._start(after_cursor, from_now)
        told = False
        reader = self._services.history.reader
        async for page in self._feed.watch(after_id, self._tenant):
            if page is None:
                if not told:
                    told = True
                    yield CaughtUp(cursor=str(after_id))
                continue
            after_id = page[-1].id
            async for item in self._shown(reader, page):
                stored, place = self._feed.passed, self._feed.place
                yield item
                if told and self._feed.passed - stored > self._lag:
                    # Other tenants' rows are no fault of this reader.
                    own = await self._feed.count(self._tenant, place, self._lag + 1)
                    self._require_pace(own, int(item.cursor))

    async def _shown(
        self, reader: RowReader, page: Sequence[Notification]
    ) -> AsyncIterator[FeedItem]:
        """Yield what a caller may see of a page.

        Raises EventCorruptError at a damaged row of it.
        """
        seen: dict[str, bool] = {}
        while page:
            items, damage = await self._services.readers.run(_decoded, reader, page)
            for item in items:
                if await self._shows(item.session_id, seen):
                    yield item
            if damage is not None and await self._shows(damage.session_id, seen):
                raise damage
            page = page[len(items) + 1 :]

    async def _shows(self, session_id: str, seen: dict[str, bool]) -> bool:
        if session_id not in seen:
            seen[session_id] = await self._lanes.show(self._tenant, session_id)
        return seen[session_id]

    async def _start(self, after_cursor: str, from_now: bool) -> int:
        if after_cursor:
            if from_now:
                raise InvalidFieldError.of("from_now", "it excludes after_cursor")
            return place_of(after_cursor)
        if not from_now:
            return 0
        return await self._feed.newest()


def place_of(cursor: str) -> int:
    """Return the place in the feed that a cursor names: 0 for none. Raises InvalidFieldError."""
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 18):
        raise InvalidFieldError.of("after_cursor", "it is no cursor of this feed")
    return int(cursor or 0)


def _take(envelopes: Iterator[Envelope]) -> list[Envelope]:
    """Return the next few."""
    some: list[Envelope] = []
    size = 0
    for envelope in envelopes:
        some.append(envelope)
        size += len(envelope.body)
        if len(some) == BATCH or size >= BATCH_BYTES:
            break
    return some


def _notice(envelope: Envelope) -> HistoryDroppedFact | DeletedFact | None:
    fact = StoredFact.FromString(envelope.body).fact
    match fact.WhichOneof("kind"):
        case "history_dropped" if fact.history_dropped.dropped:
            return fact.history_dropped
        case "deleted":
            return fact.deleted
        case "erased":  # the facts before it are stripped, that of the deletion too
            return DeletedFact()
    return None


def _decoded(
    reader: RowReader, page: Sequence[Notification]
) -> tuple[list[FeedItem], EventCorruptError | None]:
    """Return a page's rows up to a damaged one, and its damage, which names the cursor after it."""
    items: list[FeedItem] = []
    for each in page:
        try:
            items.append(_item(reader, each))
        except EventCorruptError as error:
            return items, error.before(str(each.id))
    return items, None


def _item(reader: RowReader, notification: Notification) -> FeedItem:
    row = reader.whole(reader.decode(notification, -1).sound())
    session_id, _ = reader.origin(row.ref.aggregate_id)
    fact = None
    if not row.is_event:
        fact = StoredFact.FromString(row.envelope.body).fact
        fact.time.seconds, fact.time.nanos = row.envelope.time_s, row.envelope.time_ns
    return FeedItem(str(notification.id), session_id, row.envelope, fact)
