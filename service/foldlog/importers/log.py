"""The log that an importer writes: events get their seqs, and are made to fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from foldlog.client.bodies import Body, Custom
from foldlog.client.encoding import restored_to_proto
from foldlog.client.new_events import NewEvent, Placed
from foldlog.core.canonical import check_free_json
from foldlog.core.errors import InvalidFieldError
from foldlog.core.event import PositionRange
from foldlog.core.message import Message
from foldlog.importers.errors import DamagedFileError
from foldlog.importers.json_value import dumps, parsed
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import MIB, Row, Source
from foldlog.internal.v1.raw_pb2 import RawEvent

EVENT_BYTES_AT_MOST: Final = 7 * MIB // 2
PART_BYTES: Final = 3 * MIB
JSON_DEPTH_AT_MOST: Final = 128


@dataclass(frozen=True, slots=True)
class Entry:
    """An event in its place, as it is and as it is sent, and the line of the file it is from."""

    seq: int
    line: int
    event: NewEvent
    raw: RawEvent


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is to be read. `session_id` None is the one in the file."""

    session_id: str | None = None
    salvage: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file is to become. Its id is None if the file has none.

    The entries can be taken once, ascending by seq; taking them fills the report and raises
    UnreadableFileError where the file cannot be imported.
    """

    entries: Iterator[Entry]
    session_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata_json: str = ""


class Importer(Protocol):
    """Reads one format."""

    def __call__(self, source: Source, report: Report, options: Options) -> Imported: ...


@dataclass(slots=True)
class Log:
    """Gives events their seqs in the order they are put. `format` begins the kinds of its own."""

    format: str
    report: Report
    salvage: bool = False
    next_seq: int = 0
    time_ns: int | None = None

    def custom(self, kind: str, payload: bytes, line: int) -> Iterator[Entry]:
        """Put bytes as a custom event, or as several that make them up."""
        kind = f"{self.format}.{kind}"
        if len(payload) <= PART_BYTES:
            return self.put(Custom(kind, payload), line)
        return self._in_parts(kind, payload, line)

    def _in_parts(self, kind: str, payload: bytes, line: int) -> Iterator[Entry]:
        starts = range(0, len(payload), PART_BYTES)
        for part, start in enumerate(starts, 1):
            extra = dumps({"part": part, "parts": len(starts)})
            body = Custom(kind, payload[start : start + PART_BYTES])
            group = f"{self.format}:{line}"
            yield from self.put(NewEvent(body, group=group, extra_json=extra), line)

    def raw(self, row: Row, why: str | None = None, kind: str | None = None) -> Iterator[Entry]:
        """Put a row as a custom event of its kind, to the letter; say why if it is a surprise."""
        if why is not None:
            self.report.note(NoteKind.UNREPRESENTED, row.number, f"{row.kind}: {why}")
        return self.custom(kind or row.kind, row.line.data, row.number)

    def beside(self, row: Row) -> Iterator[Entry]:
        """Put a row to the letter beside events that do not say all it says."""
        return self.custom("as-it-was", row.line.data, row.number) if row.is_altered else iter(())

    def put_all(self, events: Iterable[NewEvent | Body], line: int) -> Iterator[Entry]:
        """Put several events."""
        for event in events:
            yield from self.put(event, line)

    def put(self, given: NewEvent | Body, line: int, seq: int | None = None) -> Iterator[Entry]:
        """Put an event: at the time it has, else at the log's. A `seq` leaves a gap before it.

        An extra that no event can hold goes before it as a custom event. Raises DamagedFileError
        for what is too large; with salvage, a custom event that says so stands in its place.
        """
        event = given if isinstance(given, NewEvent) else NewEvent(given)
        if event.time_ns is None:
            event = replace(event, time_ns=self.time_ns)
        if event.extra_json is not None and not self._holds(event, line):
            yield from self.custom("extra", event.extra_json.encode(), line)
            event = replace(event, extra_json=None)
        raw = self._encoded(event, line, seq)
        if len(raw.body) > EVENT_BYTES_AT_MOST:
            event = self._stand_in(event, len(raw.body), line)
            raw = self._encoded(event, line, seq)
        self.next_seq = raw.seq + 1
        self.report.made[event_type(event)] += 1
        yield Entry(raw.seq, line, event, raw)

    def _holds(self, event: NewEvent, line: int) -> bool:
        try:
            check_free_json(event.extra_json or "{}", "extra_json", JSON_DEPTH_AT_MOST)
        except InvalidFieldError as error:
            self.report.note(NoteKind.UNREPRESENTED, line, f"what goes with it: {error}")
            return False
        return len(self._encoded(event, line).body) <= EVENT_BYTES_AT_MOST

    def _encoded(self, event: NewEvent, line: int, seq: int | None = None) -> RawEvent:
        try:
            placed = Placed(self.next_seq if seq is None else seq, event)
            return restored_to_proto(placed, f"line {line}")
        except InvalidFieldError as error:
            raise DamagedFileError(line, str(error)) from None

    def _stand_in(self, event: NewEvent, size: int, line: int) -> NewEvent:
        why = f"an event of {size} bytes is more than the {EVENT_BYTES_AT_MOST} a log takes"
        if not self.salvage:
            raise DamagedFileError(line, why)
        self.report.note(NoteKind.DAMAGED, line, f"left out: {why}")
        told = dumps({"line": line, "size_bytes": size, "type": event_type(event)})
        return NewEvent(Custom(f"{self.format}.too-large", told.encode()), event.time_ns)


def event_type(event: NewEvent) -> str:
    """Return what kind of event it is, for a report."""
    body = event.body
    if isinstance(body, Message):
        return ("", "system", "user", "assistant", "tool")[int(body.role)] + " message"
    return type(body).__name__


def replacing_all(event: NewEvent, log: Log, start: int = 0, stop: int | None = None) -> NewEvent:
    """Return the event so that it takes the place of the positions from start on, or of none.

    `stop` None is all that stands there now.
    """
    last = log.next_seq - 1 if stop is None else stop
    return replace(event, replace=PositionRange(start, last)) if last >= start else event


def with_ids(message: Message, format_name: str, ids: Mapping[str, Any]) -> Message:
    """Return the message with the file's own ids in its metadata."""
    kept = {name: value for name, value in ids.items() if value is not None}
    if not kept:
        return message
    metadata = parsed((message.metadata_json or "{}").encode()).value
    assert isinstance(metadata, dict)
    return replace(message, metadata_json=dumps({**metadata, format_name: kept}))
