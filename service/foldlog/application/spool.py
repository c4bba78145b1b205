"""A spool: events to restore, judged one by one and kept in a file until all are there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from errno import EIO

from foldlog.application.attachments import Attachments, Named, named_in
from foldlog.application.fold import Fold, Live, Passed, RowRef
from foldlog.application.incoming import judged_body, time_of
from foldlog.application.rows import live_of
from foldlog.application.texts import cut
from foldlog.core.active import active_path
from foldlog.core.errors import AttachmentNotFoundError, InvalidFieldError, TooLargeError
from foldlog.core.event import SURFACE_TYPES, EventType, PositionRange, Record
from foldlog.core.validation import validate_replace, validate_request_id
from foldlog.internal.v1.raw_pb2 import RawEvent
from foldlog.persistence.object_cipher import Throwaway
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import EventBody

MAX_SEQ = 2**62  # so that next_seq and sums of seqs stay within 64 bits
MEMORY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Spooled:
    """An event read back from a spool."""

    event: RawEvent
    type: int


class Spool:
    """Judges and keeps events, ascending by seq. Blocking.

    `keep_text` is given the large texts of headers, which their rows are to refer to. With
    `keeps_newer`, events of types that only a newer release knows pass, if they name their type.
    With a cipher the file has none of them in clear.
    """

    def __init__(
        self,
        limits: Limits,
        keep_text: Callable[[bytes], None],
        cipher: Throwaway | None = None,
        *,
        keeps_newer: bool = False,
    ) -> None:
        self._limits = limits
        self._keeps_newer = keeps_newer
        self._keep_text = keep_text
        self._cipher = cipher
        self._file = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115 - closed by us
        self.begins_with_request = False
        self._request_ids: set[str] = set()
        self._size = 0
        self._named: list[Named] = []
        self._missing: AttachmentNotFoundError | None = None
        self.count = 0
        self.first_seq = -1
        self.last_seq = -1
        self.dropped: list[int] = []

    @property
    def size_bytes(self) -> int:
        """The bytes of the events, encoded."""
        return self._size

    def close(self) -> None:
        """Forget the events."""
        self._file.close()

    async def judge_attachments(self, objects: Attachments) -> None:
        """Look for the attachments that the events added since the last call name.

        What is missing is told by `require_attachments`: a request that was answered before is not
        to be refused.
        """
        named, self._named = self._named, []
        try:
            await objects.require(named)
        except AttachmentNotFoundError as error:
            self._missing = self._missing or error

    def require_attachments(self) -> None:
        """Raise AttachmentNotFoundError if an event names an attachment that is not stored."""
        if self._missing is not None:
            raise self._missing

    def add(self, event: RawEvent, path: str) -> None:
        """Judge an event and keep it. Raises InvalidFieldError or TooLargeError naming the path."""
        if self.count and event.seq <= self.last_seq:
            wrong = f"{event.seq} does not follow {self.last_seq}"
            raise InvalidFieldError.of(f"{path}.seq", wrong)
        if event.seq > MAX_SEQ:
            raise InvalidFieldError.of(f"{path}.seq", f"{event.seq} is above {MAX_SEQ}")
        type_ = self._judged_type(event, path)
        if event.HasField("replace"):
            self._judge_replace(event, type_, path)
        if event.HasField("time"):
            time_of(event.time, f"{path}.time")
        if event.HasField("request_next_seq"):
            _judge_mark(event, type_, path)
        if type_ == EventType.REQUEST_HEADER and (found := cut(event.body)) is not None:
            for content in found.contents:
                self._keep_text(content)
        self._note_request(event, path)
        self._write(event, type_)
        if self.count == 1:
            self.first_seq = event.seq
        self.last_seq = event.seq

    def _judged_type(self, event: RawEvent, path: str) -> int:
        if not event.dropped:
            body, type_, message = judged_body(
                event.body, path, self._limits, keeps_newer=self._keeps_newer
            )
            if type_ is EventType.UNSPECIFIED:
                return _newer_type(event, path)
            if type_ is EventType.REWIND and not -1 <= body.rewind.to_seq < event.seq:
                wrong = f"{body.rewind.to_seq} is not within -1 and the event's own seq"
                raise InvalidFieldError.of(f"{path}.body.rewind.to_seq", wrong)
            if message is not None:
                self._named.extend(named_in(message, f"{path}.body.message"))
            return type_
        if int(event.type) not in SURFACE_TYPES:
            raise InvalidFieldError.of(f"{path}.dropped", "only surface events can be dropped")
        self.dropped.append(event.seq)
        return event.type

    def _judge_replace(self, event: RawEvent, type_: int, path: str) -> None:
        if type_ not in SURFACE_TYPES:
            raise InvalidFieldError.of(f"{path}.replace", "only a surface event can replace")
        try:
            validate_replace(PositionRange(event.replace.start, event.replace.stop), event.seq)
        except InvalidFieldError as error:
            raise error.within(path) from None

    def _note_request(self, event: RawEvent, path: str) -> None:
        if not event.request_digest:
            return
        if not event.request_id or not 1 <= event.request_row_count <= MAX_SEQ:
            wrong = "a request id and a count of 1 to 2**62 are required with it"
            raise InvalidFieldError.of(f"{path}.request_digest", wrong)
        validate_request_id(event.request_id, self._limits.request_id_bytes)
        if event.request_id in self._request_ids:
            raise InvalidFieldError.of(f"{path}.request_id", "it stands on an earlier event too")
        self._request_ids.add(event.request_id)
        self.begins_with_request = self.begins_with_request or not self.count

    def _write(self, event: RawEvent, type_: int) -> None:
        encoded = event.SerializeToString()
        self._size += len(encoded)
        self.count += 1
        if self.count > self._limits.restore_events:
            raise TooLargeError(field="events", size=self.count, limit=self._limits.restore_events)
        if self._size > self._limits.restore_bytes:
            raise TooLargeError(field="bytes", size=self._size, limit=self._limits.restore_bytes)
        self._put(self.count - 1, type_.to_bytes(4) + encoded)

    def _put(self, index: int, kept: bytes) -> None:
        if self._cipher is not None:
            kept = self._cipher.encrypt(index, kept)
        self._file.write(len(kept).to_bytes(4) + kept)

    def __iter__(self) -> Iterator[Spooled]:
        self._file.seek(0)
        for index in range(self.count):
            kept = self._got(index)
            yield Spooled(RawEvent.FromString(kept[4:]), int.from_bytes(kept[:4]))

    def _got(self, index: int) -> bytes:
        kept: bytes | None = self._file.read(int.from_bytes(self._file.read(4)))
        if kept and self._cipher is not None:
            kept = self._cipher.decrypt(index, kept)
        if not kept:
            raise OSError(EIO, "the events put aside are not those that were put there")
        return kept


def _newer_type(event: RawEvent, path: str) -> int:
    if event.type <= max(EventType):
        wrong = "unknown event type: no kind this release knows is set, and no other type is named"
        raise InvalidFieldError.of(f"{path}.body.kind", wrong)
    return event.type


def _judge_mark(event: RawEvent, type_: int, path: str) -> None:
    if type_ != EventType.STEP_START:
        raise InvalidFieldError.of(f"{path}.request_next_seq", "only a step_start has it")
    if not event.seq < event.request_next_seq <= MAX_SEQ:
        wrong = f"{event.request_next_seq} does not follow the event's own seq, {event.seq}"
        raise InvalidFieldError.of(f"{path}.request_next_seq", wrong)


class Rehearsal:
    """Follows a spool's events on a fold: what replaces shadow, which turns rewinds leave open."""

    def __init__(self, fold: Fold, older: Callable[[int], Fold]) -> None:
        self._base = fold
        self._base_seq = fold.next_seq - 1
        self._older = older
        self._fold = fold.copy()
        self._passed: list[Passed] = []

    def take(self, spooled: Spooled, row: RowRef) -> tuple[list[Live], Fold]:
        """Take in the next event and return what it shadowed and the fold after it."""
        event = spooled.event
        range_ = None
        if event.HasField("replace"):
            range_ = PositionRange(event.replace.start, event.replace.stop)
        rewind_to = None
        if spooled.type == EventType.REWIND:
            rewind_to = EventBody.FromString(event.body).rewind.to_seq
        live = self._live(spooled, event.seq if range_ is None else range_.start, row)
        passed = Passed(event.seq, spooled.type, row, live, range_, rewind_to)
        self._passed.append(passed)
        if rewind_to is None:
            return self._fold.take(passed), self._fold
        self._fold = self._rewound()
        return [], self._fold

    def require_whole(self) -> None:
        """Raise InvalidFieldError if an event that was dropped is on the surface after all."""
        gone = next((live for live in self._fold.surface if not live.digest), None)
        if gone is not None:
            raise InvalidFieldError.of(
                "events.dropped", f"event {gone.seq} was dropped, and nothing shadows or undoes it"
            )

    def _live(self, spooled: Spooled, position: int, row: RowRef) -> Live | None:
        if spooled.type not in SURFACE_TYPES:
            return None
        if spooled.event.dropped:
            return Live(position, spooled.event.seq, row, 0, b"")
        message = EventBody.FromString(spooled.event.body).message
        return live_of(message, spooled.event.seq, position, row)

    def _rewound(self) -> Fold:
        records = [Record(p.seq, p.type, p.replace, p.rewind_to) for p in self._passed]
        target, active = active_path(records, self._base_seq)
        fold = self._base.copy() if target is None else self._older(target).copy()
        of_seq = {p.seq: p for p in self._passed}
        for record in active:
            fold.take(of_seq[record.seq])
        return fold
