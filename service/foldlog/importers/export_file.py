"""The file that the service imports, made of an importer's events as it is read.

Its lines are those of an export: a header, one line per event with the body in base64, and the end.
"""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, Final, cast

from foldlog.importers.errors import DamagedFileError
from foldlog.importers.log import Entry, Imported
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Source

FORMAT: Final = 1
HEADER: Final = "foldlog_export"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def line(fields: Mapping[str, Any]) -> bytes:
    """Return one line of the file."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def lines_of(
    imported: Imported, session_id: str, placed: Callable[[Entry], None]
) -> Iterator[bytes]:
    """Yield the lines of what a file is to become. `placed` hears of each event before its line."""
    yield line(
        {
            HEADER: FORMAT,
            "session_id": session_id,
            "labels": dict(imported.labels),
            "metadata_json": imported.metadata_json,
        }
    )
    count = next_seq = 0
    for entry in imported.entries:
        placed(entry)
        yield event_line(entry)
        count, next_seq = count + 1, entry.seq + 1
    yield end_line(count, next_seq)


def event_line(entry: Entry) -> bytes:
    """Return the line of an event. One without a time gets the service's clock."""
    raw = entry.raw
    fields: dict[str, Any] = {"seq": raw.seq}
    if raw.HasField("time"):
        fields["time"] = _time_text(raw.time.seconds, raw.time.nanos)
    if raw.HasField("replace"):
        fields["replace"] = {"start": raw.replace.start, "stop": raw.replace.stop}
    return line({**fields, "body": b64encode(raw.body).decode()})


def end_line(count: int, next_seq: int) -> bytes:
    """Return the last line."""
    return line({"end": True, "events": count, "next_seq": next_seq})


def _time_text(seconds: int, nanos: int) -> str:
    moment = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='seconds')}.{nanos:09d}Z"


def salvaged(source: Source, report: Report) -> Iterator[bytes]:
    """Yield an export up to where it stops making sense, and an end line that fits.

    The service judges the lines as it does those of any export.
    """
    count, next_seq = -1, 0
    for each in source.lines():
        report.lines = each.number
        seq = next_seq - 1 if count < 0 else _seq_of(each.data)
        if _is_end(each.data):
            yield each.data + b"\n"
            return
        if count < 0 and not is_header(each.data):
            raise DamagedFileError(1, "it is not the header of a Foldlog export")
        if seq is None or seq < next_seq - (count < 0):
            why = f"left out with all that follows, {len(each.data)} bytes and what is behind them"
            kind = NoteKind.DAMAGED if each.is_ended else NoteKind.CUT
            report.note(kind, each.number, f"{why}: it is no line of an export")
            break
        yield each.data + b"\n"
        report.read["header" if count < 0 else "event"] += 1
        count, next_seq = count + 1, seq + 1
    report.note(NoteKind.ASSUMED, None, f"the export has no end: {max(count, 0)} events count")
    yield end_line(max(count, 0), next_seq)


def is_header(data: bytes) -> bool:
    """Return whether a line is the header of an export."""
    return HEADER in fields_of(data)


def _is_end(data: bytes) -> bool:
    return fields_of(data).get("end") is True


def _seq_of(data: bytes) -> int | None:
    seq = fields_of(data).get("seq")
    return seq if isinstance(seq, int) and not isinstance(seq, bool) and seq >= 0 else None


def fields_of(data: bytes) -> dict[str, Any]:
    """Return the fields of a line; none if it makes no sense."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Rendered(io.RawIOBase):
    """A file for reading whose bytes are made as it is read, and made anew when it is rewound."""

    def __init__(self, make: Callable[[], Iterable[bytes]]) -> None:
        super().__init__()
        self._make = make
        self._pieces: Iterator[bytes] = iter(make())
        self._at = 0
        self._rest = b""

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it can be read again from its beginning."""
        return True

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go back to the beginning, or stay."""
        if whence != io.SEEK_SET or offset not in (0, self._at):
            raise io.UnsupportedOperation("it can only be read from its beginning")
        if offset < self._at:
            self._pieces, self._rest, self._at = iter(self._make()), b"", 0
        return offset

    def read(self, size: int = -1, /) -> bytes:
        """Read up to so many bytes."""
        pieces = [self._rest]
        length = len(self._rest)
        while size < 0 or length < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            pieces.append(piece)
            length += len(piece)
        data = b"".join(pieces)
        given, self._rest = (data, b"") if size < 0 else (data[:size], data[size:])
        self._at += len(given)
        return given

    def as_file(self) -> BinaryIO:
        """Return itself as the kind of file that the client takes."""
        return cast(BinaryIO, self)
