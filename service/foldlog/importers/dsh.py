"""Sessions of DeepSeek Harness: a header line, then JSON Lines of events numbered from 0.

Every event keeps its seq. A row of packed stream deltas stays one custom event at the first of its
seqs; the others stay free. What the log has no words for is kept to the letter as custom events. A
last line without a newline is torn, as the format has it, even if it makes sense. With salvage,
what stands before the damage is taken: ranges name seqs, so that nothing after it is certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from foldlog.client.bodies import Body, Custom
from foldlog.client.new_events import NewEvent
from foldlog.core.errors import EntryNotLiveError, InvalidFieldError
from foldlog.core.event import TYPE_OF_ROLE, PositionRange
from foldlog.core.event import Record as Live
from foldlog.core.message import Message, OpaquePart, Role
from foldlog.core.surface import Surface
from foldlog.importers import dsh_messages
from foldlog.importers.dsh_messages import NAME
from foldlog.importers.dsh_rows import Record, record_of
from foldlog.importers.errors import DamagedFileError
from foldlog.importers.json_value import dumps
from foldlog.importers.log import Entry, Imported, Log, Options, with_ids
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Row, Salvage, Source
from foldlog.importers.times import ns_of_ms

SESSION: Final = "session"
VERSION: Final = 0
SURFACE: Final = frozenset({"user/message", "assistant/message", "tool/result"})


def read(source: Source, report: Report, options: Options) -> Imported:
    """Read a session, in one pass; what is held is the surface's seqs."""
    header = _header_of(source)
    salvage = Salvage.BEFORE if options.salvage else Salvage.NOTHING
    rows = source.rows(report, salvage, blank_is_damage=True, unended_is_torn=True)
    entries = _Session(source, Log(NAME, report), salvage).entries(rows)
    metadata = dumps({"imported": {"format": NAME, "header": header}})
    return Imported(entries, str(header["id"]), {"imported_from": NAME}, metadata)


def _header_of(source: Source) -> dict[str, Any]:
    rows = Source(source.file).rows(Report(NAME), blank_is_damage=True, unended_is_torn=True)
    row = next(rows, None)
    fields = row.fields if row is not None else {}
    if fields.get("type") != SESSION:
        raise DamagedFileError(1, "it is not the header of a session")
    if fields.get("version") != VERSION:
        raise DamagedFileError(1, f"version {fields.get('version')} of the format is not known")
    if not isinstance(fields.get("id"), str) or not fields["id"]:
        raise DamagedFileError(1, "the header has no session id")
    return fields


@dataclass(slots=True)
class _Session:
    source: Source
    log: Log
    salvage: Salvage
    surface: Surface[Live] = field(default_factory=Surface)

    def entries(self, rows: Iterator[Row]) -> Iterator[Entry]:
        for row in rows:
            if row.number == 1:
                self.log.report.read[SESSION] += 1
                continue
            try:
                record = self._next(row)
                event = self._event(record, row)
            except (ValueError, InvalidFieldError, EntryNotLiveError) as error:
                self.source.damaged(row.number, str(error), self.log.report, self.salvage)
                return
            self.log.report.read[record.type] += 1
            self.log.time_ns = ns_of_ms(record.time_ms)
            yield from self.log.put(event, row.number)
            self.log.next_seq = record.seq + record.count

    def _next(self, row: Row) -> Record:
        record = record_of(row.fields)
        if record.seq != self.log.next_seq:
            raise ValueError(f"its seq is {record.seq}; {self.log.next_seq} was to follow")
        return record

    def _event(self, record: Record, row: Row) -> NewEvent:
        if record.type in SURFACE or record.surface_op is not None:
            return self._surface_event(record, row)
        body = self._body(record, row)
        is_letter = body is None
        if body is None:
            body = Custom(f"{NAME}.{record.type}", row.line.data)
        return NewEvent(body, extra_json=None if is_letter else dumps({NAME: row.fields}))

    def _body(self, record: Record, row: Row) -> Body | None:
        make = dsh_messages.BODIES.get(record.type)
        if row.is_altered and make is not None:
            told = f"{record.type}: it is kept to the letter as a custom event"
            self.log.report.note(NoteKind.UNREPRESENTED, row.number, told)
            return None
        return make(record.data) if make is not None else None

    def _surface_event(self, record: Record, row: Row) -> NewEvent:
        """Return a surface event; its range, of live seqs, becomes one of positions."""
        message = dsh_messages.message_of(record.type, record.data)
        type_ = TYPE_OF_ROLE[Role(message.role)]
        range_ = self._range(record.surface_op)
        live = Live(record.seq, type_, range_)
        if range_ is None:
            self.surface.insert(live)
        else:
            self.surface.replace(live, range_.stop)
        self._note(message, row)
        kept = with_ids(message, NAME, {"id": _ids(record.data)})
        return NewEvent(kept, replace=range_, extra_json=dumps({NAME: _envelope(row.fields)}))

    def _range(self, op: object) -> PositionRange | None:
        if op == "append":
            return None
        if not isinstance(op, Mapping) or op.keys() != {"op", "start", "end"}:
            raise ValueError("its surfaceOp is neither append nor a replace")
        start, end = op["start"], op["end"]
        if op["op"] != "replace" or not isinstance(start, int) or not isinstance(end, int):
            raise ValueError("its surfaceOp is neither append nor a replace")
        return self.surface.resolve(start, end)

    def _note(self, message: Message, row: Row) -> None:
        if message.content == () and not message.tool_calls:
            told = "an empty message, which this log shows and DeepSeek Harness hides"
            self.log.report.note(NoteKind.ASSUMED, row.number, told)
        parts = message.content if isinstance(message.content, tuple) else ()
        if any(isinstance(p, OpaquePart) and p.kind == f"{NAME}.image" for p in parts):
            told = "an image is named here; its bytes are not in the file"
            self.log.report.note(NoteKind.UNREPRESENTED, row.number, told)


def _ids(data: Mapping[str, Any]) -> object:
    message = data.get("message", data)
    return message.get("id") if isinstance(message, Mapping) else None


def _envelope(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an event says beside the content of its message."""
    data = fields["data"]
    message = data.get("message")
    if isinstance(message, Mapping):
        data = {**data, "message": _without_content(message)}
    return {**fields, "data": _without_content(data)}


def _without_content(held: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without its content, but for members of blocks the log has no word for."""
    blocks = held.get("content")
    rest = {name: value for name, value in held.items() if name != "content"}
    if isinstance(blocks, list) and (unsaid := dsh_messages.unsaid(blocks)):
        return {**rest, "content": unsaid}
    return rest
