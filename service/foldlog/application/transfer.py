"""Whole logs in and out: restore, export, import."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from foldlog.application import decisions, exporting
from foldlog.application.attached import AttachmentsIn, AttachmentsOut
from foldlog.application.checkpoint import origin_of
from foldlog.application.decisions import Guard
from foldlog.application.domain import (
    RequestKey,
    RowSpec,
    Session,
    build,
    turns_to,
)
from foldlog.application.fold import Fold, RowRef
from foldlog.application.history import spans_of
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.mapper import stored_row
from foldlog.application.reading import Reading
from foldlog.application.spool import Rehearsal, Spool, Spooled
from foldlog.application.texts import cut
from foldlog.application.writing import Writing
from foldlog.compression import Packer
from foldlog.core.errors import (
    InvalidFieldError,
    RequestIdReusedError,
    SeqBehindHeadError,
    SessionDeletedError,
    SessionExistsError,
)
from foldlog.core.event import EventType
from foldlog.internal.v1.raw_pb2 import RawEvent
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.persistence.errors import DuplicateRowError
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.settings import Limits
from foldlog.v1 import event_pb2 as pb

CHUNK_ROWS = 500
PIECE_BYTES = 256 * 1024
ATTEMPTS = 5


@dataclass(slots=True)
class File:
    """An export as it is read: lines in, events spooled."""

    spool: Spool
    attached: AttachmentsIn
    rest: bytes = b""
    lines: int = 0
    header: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    max_line_bytes: int = 64 * 1024 * 1024

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Blocking. Raises InvalidFieldError naming the line."""
        *whole, self.rest = (self.rest + data).split(b"\n")
        for each in whole:
            self._line(each)
        if len(self.rest) > self.max_line_bytes:
            raise InvalidFieldError.of(
                f"line {self.lines + 1}", "it is longer than any line can be"
            )

    def finish(self) -> None:
        """Take note of the end. Raises InvalidFieldError if the file ends early."""
        if self.rest:
            self._line(self.rest)
            self.rest = b""
        if self.header is None:
            raise InvalidFieldError.of("line 1", "the file is empty")
        if self.end is None:
            raise InvalidFieldError.of(
                f"line {self.lines + 1}", "the file ends without its end line"
            )
        if self.end.get("events") != self.spool.count:
            raise InvalidFieldError.of(
                f"line {self.lines}",
                f"it counts other than the {self.spool.count} events before it",
            )

    def _line(self, encoded: bytes) -> None:
        self.lines += 1
        fields = exporting.parse_line(encoded, self.lines)
        if self.header is None:
            self._begin(fields)
        elif self.end is not None:
            raise InvalidFieldError.of(f"line {self.lines}", "it stands after the end line")
        elif "end" in fields:
            self.attached.require_whole(self.lines)
            self.end = fields
        elif "attachment" in fields:
            self.attached.take(fields["attachment"], self.lines)
        else:
            self.attached.require_whole(self.lines)
            event = exporting.event_from(fields, self.lines)
            self.spool.add(event, f"line {self.lines}")

    def _begin(self, fields: dict[str, Any]) -> None:
        if fields.get("foldlog_export") != exporting.FORMAT:
            raise InvalidFieldError.of("line 1", "it is not the header of a Foldlog export")
        exporting.judge_header(fields)
        self.header = fields

    @property
    def session_id(self) -> str:
        """The session the file was made from."""
        return str((self.header or {}).get("session_id", ""))


@dataclass(slots=True)
class Bulk:
    """Rows of one session, made one after the other while they are written in one transaction."""

    head: Session
    request: RequestKey | None
    row_count: int
    pack: Packer
    now_ns: int = field(default_factory=time.time_ns)

    def rows(self, specs: Iterator[RowSpec]) -> Iterator[list[SessionStoredEvent]]:
        """Yield the rows in chunks, moving the head past them."""
        chunk: list[SessionStoredEvent] = []
        for spec in specs:
            (event,) = build(self.head, [spec], self.now_ns, self.request, self.row_count)
            self.request = None
            chunk.append(stored_row(event, self.head.tenant, self.pack))
            if len(chunk) == CHUNK_ROWS:
                yield chunk
                chunk = []
        if chunk:
            yield chunk


class Transfer:
    """Restores, exports and imports."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        reading: Reading,
        writing: Writing,
        limits: Limits,
        tenant: str,
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._reading = reading
        self._writing = writing
        self._limits = limits
        self._tenant = tenant

    async def restore(
        self,
        session_id: str,
        request_id: str,
        guard: Guard,
        batches: AsyncIterator[Sequence[RawEvent]],
    ) -> tuple[int, int]:
        """Put events under their seqs and return (count, next_seq)."""
        async with self._lanes.use(self._tenant, session_id) as lane:
            spool = self._new_spool()
            try:
                content = await self._spool(spool, batches)
                request = self._writing.request(request_id, b"restore", content)
                await lane.write(self._restore_write(session_id, request, guard, spool))
                return spool.count, spool.last_seq + 1
            finally:
                spool.close()

    def _new_spool(self, *, keeps_newer: bool = False) -> Spool:
        throwaway = self._services.store.throwaway
        cipher = None if throwaway is None else throwaway()
        keep_text = self._services.history.reader.texts.put
        return Spool(self._limits, keep_text, cipher, keeps_newer=keeps_newer)

    def _restore_write(
        self, session_id: str, request: RequestKey, guard: Guard, spool: Spool
    ) -> Write:
        def check(head: Session) -> None:
            decisions.require_session(head, session_id)
            decisions.require_guard(head, guard)
            spool.require_attachments()
            if spool.first_seq < head.next_seq:
                raise SeqBehindHeadError(seq=spool.first_seq, next_seq=head.next_seq)

        def specs(head: Session, fold: Fold, base: Session) -> Iterator[RowSpec]:
            if spool.begins_with_request:
                yield RowSpec(Session.Restored, b"")
            rehearsal = self._rehearsal(spool, fold, base)
            for spooled in spool:
                yield _spec(head, spooled, rehearsal)
            rehearsal.require_whole()

        row_count = spool.count + spool.begins_with_request
        return self._bulk_write(request, row_count, spool.size_bytes, check, specs)

    async def _spool(self, spool: Spool, batches: AsyncIterator[Sequence[RawEvent]]) -> bytes:
        digest = _Content()
        async for events in batches:
            first = spool.count
            await self._services.readers.run(_add, spool, events, first, digest)
            await spool.judge_attachments(self._services.objects)
        if not spool.count:
            raise InvalidFieldError.of("batch.events", "at least one event is required")
        return digest.value()

    def _rehearsal(self, spool: Spool, fold: Fold, base: Session) -> Rehearsal:
        history = self._services.history
        return Rehearsal(fold, lambda seq: history.fold_at(base, seq))

    def _bulk_write(
        self,
        request: RequestKey,
        row_count: int,
        size_bytes: int,
        check: Callable[[Session], None],
        specs: Callable[[Session, Fold, Session], Iterator[RowSpec]],
    ) -> Write:
        """Return a write that stores its rows beside the committer, while its lane waits."""

        async def prepare(lane: Lane) -> None:
            for attempt in range(ATTEMPTS):
                await lane.refresh()
                if await lane.answered(request) is not None:
                    return
                # Head and fold of one moment: by now others may have written.
                fold = (await lane.current_fold()).copy() if lane.head.exists else Fold()
                head = lane.head.copy()
                check(head)
                lane.require_free()
                cost = self._services.meter.charge(not head.exists, size_bytes)
                try:
                    newest = await self._insert(lane, head, request, row_count, fold, specs)
                    self._services.meter.stored(cost, newest)
                    return
                except DuplicateRowError as error:
                    if error.constraint == "request" and await lane.answered(request) is None:
                        raise RequestIdReusedError(
                            request_id=f"one of those restored beside {request.request_id}"
                        ) from error
                    if attempt == ATTEMPTS - 1:
                        raise
                finally:
                    if cost is not None and cost.notification_id is None:
                        self._services.meter.release(cost)

        async def replay(lane: Lane, _: object) -> None:
            return None

        return Write(request, lambda head, _: Decided(None), replay, prepare)

    async def _insert(
        self,
        lane: Lane,
        head: Session,
        request: RequestKey,
        row_count: int,
        fold: Fold,
        specs: Callable[[Session, Fold, Session], Iterator[RowSpec]],
    ) -> int:
        base = head.copy()
        bulk = Bulk(head, request, row_count, self._services.pack)
        recorder = self._services.store.recorder
        rows = bulk.rows(specs(head, fold, base))
        last = await self._services.readers.run(recorder.insert_chunks, rows)
        lane.supersede(head)
        self._services.on_stored(lane, (), last)
        return last

    async def export(self, session_id: str, with_attachments: bool = False) -> AsyncIterator[bytes]:
        """Yield a session's file in pieces.

        With attachments, raises AttachmentUnknownError or AttachmentCorruptError in their place.
        Raises SessionDeletedError if the session is erased meanwhile: the file has no end then.
        """
        head = await self._reading.head(session_id)
        spans, next_seq = spans_of(head), head.next_seq
        piece = exporting.header_line(
            session_id, head.labels, head.metadata_json, head.whole_from_seq
        )
        count = 0
        walk = self._reading.walk_from(spans, 0)
        rest = _lines(walk, AttachmentsOut(self._services.objects) if with_attachments else None)
        async with self._reading.unless_erased(session_id):
            while lines := await self._services.readers.run(_some, rest):
                count += lines.events
                yield piece + lines.data
                piece = b""
        await self._reading.require_unerased(session_id)
        yield piece + exporting.end_line(count, next_seq)

    async def import_file(
        self, session_id: str, request_id: str, data: AsyncIterator[bytes]
    ) -> tuple[Session, int]:
        """Make a session from a file and return (its head, how many events it has)."""
        objects = self._services.objects
        spool = self._new_spool(keeps_newer=True)
        file = File(spool, AttachmentsIn(objects))
        try:
            digest = _Content()
            async for part in data:
                digest.add(part)
                await self._services.readers.run(file.feed, part)
                await file.spool.judge_attachments(objects)
            await self._services.readers.run(file.finish)
            await file.spool.judge_attachments(objects)
            name = session_id or file.session_id
            assert file.header is not None
            labels = file.header.get("labels", {})
            metadata_json = file.header.get("metadata_json", "")
            self._writing.judge_description(labels, metadata_json)
            self._writing.require_labels("ImportSession", labels)
            request = self._writing.request(request_id, b"import", name.encode(), digest.value())
            write = self._import_write(name, request, file, labels, metadata_json)
            async with self._lanes.use(self._tenant, name) as lane:
                await lane.write(write)
                return lane.head, file.spool.count
        finally:
            file.spool.close()
            await asyncio.shield(self._services.readers.run(file.attached.close))

    def _import_write(
        self,
        session_id: str,
        request: RequestKey,
        file: File,
        labels: Mapping[str, str],
        metadata_json: str,
    ) -> Write:
        def check(head: Session) -> None:
            if head.is_deleted:
                raise SessionDeletedError(session_id=session_id)
            if head.exists:
                raise SessionExistsError(session_id=session_id)
            file.spool.require_attachments()

        def specs(head: Session, fold: Fold, base: Session) -> Iterator[RowSpec]:
            head.key = secrets.token_bytes(32)
            created = pb.CreatedFact(labels=labels, metadata_json=metadata_json)
            origin = origin_of(session_id, head.key, ())
            stored = StoredFact(fact=pb.Fact(created=created), origin=origin)
            yield RowSpec(Session.Created, stored.SerializeToString(deterministic=True))
            rehearsal = self._rehearsal(file.spool, fold, base)
            for spooled in file.spool:
                yield _spec(head, spooled, rehearsal)
            rehearsal.require_whole()
            yield from _closing(head, file)

        # The rows beside the events: the first one, and one more if the file needs it.
        extra = 1 + _needs_closing(file)
        count, size_bytes = file.spool.count + extra, file.spool.size_bytes
        return self._bulk_write(request, count, size_bytes, check, specs)


def _needs_closing(file: File) -> bool:
    header, end = file.header or {}, file.end or {}
    is_cut = bool(file.spool.dropped or header.get("whole_from_seq"))
    return is_cut or end.get("next_seq") != file.spool.last_seq + 1


def _closing(head: Session, file: File) -> Iterator[RowSpec]:
    """Yield the fact that carries dropped ranges, or a next_seq beyond the last event's."""
    if not _needs_closing(file):
        return
    header, end = file.header or {}, file.end or {}
    next_seq = end.get("next_seq")
    if not isinstance(next_seq, int) or not head.next_seq <= next_seq < 2**62:
        raise InvalidFieldError.of(f"line {file.lines}.next_seq", "it is below the events'")
    whole = header.get("whole_from_seq", 0)
    if whole > next_seq:
        raise InvalidFieldError.of("line 1.whole_from_seq", f"{whole} is above {next_seq}")
    dropped = pb.HistoryDroppedFact(
        whole_from_seq=whole,
        dropped=decisions.seq_ranges(file.spool.dropped),
    )
    stored = StoredFact(fact=pb.Fact(history_dropped=dropped))
    yield RowSpec(Session.HistoryDropped, stored.SerializeToString(), seq=next_seq)


def _spec(head: Session, spooled: Spooled, rehearsal: Rehearsal) -> RowSpec:
    """Return a restored event's row."""
    event = spooled.event
    row = RowRef(head.id, head.version + 1)
    shadowed, fold = rehearsal.take(spooled, row)
    envelope = Envelope(dropped=event.dropped)
    if event.HasField("replace"):
        envelope.replace.start, envelope.replace.stop = event.replace.start, event.replace.stop
        envelope.replace.shadowed_seqs.extend(each.seq for each in shadowed)
    if spooled.type == EventType.REWIND:
        envelope.turns.CopyFrom(turns_to(fold.turns))
    if event.HasField("request_next_seq"):
        envelope.request_mark.next_seq = event.request_next_seq
    if event.request_digest:
        envelope.request_id, envelope.row_count = event.request_id, event.request_row_count
        envelope.request_digest = event.request_digest
    else:
        envelope.noted_request_id = event.request_id
    time_ = (event.time.seconds, event.time.nanos) if event.HasField("time") else None
    body = event.body
    if spooled.type == EventType.REQUEST_HEADER and (found := cut(body)) is not None:
        body = found.body
        envelope.header_texts.CopyFrom(found.texts)
    return RowSpec(
        Session.Event,
        body,
        spooled.type,
        seq=event.seq,
        time=time_,
        envelope=envelope,
    )


def _lines(
    walk: Iterator[Envelope], attached: AttachmentsOut | None
) -> Iterator[tuple[bool, bytes]]:
    """Yield a file's lines between its first and its last, and whether each is an event's."""
    for envelope in walk:
        if attached is not None:
            for each in attached.lines(envelope):
                yield False, each
        yield True, exporting.event_line(envelope)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Some lines of a file, and how many of them are events'."""

    data: bytes
    events: int


def _some(lines: Iterator[tuple[bool, bytes]]) -> _Lines | None:
    """Return the next lines; None after the last."""
    some: list[bytes] = []
    size = events = 0
    for is_event, each in lines:
        some.append(each)
        size, events = size + len(each), events + is_event
        if size >= PIECE_BYTES:
            break
    return _Lines(b"".join(some), events) if some else None


class _Content:
    """What tells whether two streams are the same."""

    def __init__(self) -> None:
        self._digest = sha256()

    def add(self, part: bytes) -> None:
        """Take the next bytes."""
        self._digest.update(part)

    def value(self) -> bytes:
        """Return the digest over all of them."""
        return self._digest.digest()


def _add(spool: Spool, events: Sequence[RawEvent], first: int, digest: _Content) -> None:
    for index, event in enumerate(events):
        digest.add(event.SerializeToString())
        spool.add(event, f"events[{first + index}]")
