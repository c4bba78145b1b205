"""What importers make of files, without a service: events, and the surface by its definition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from foldlog.client.bodies import Custom, Rewind
from foldlog.core.active import active_path
from foldlog.core.event import TYPE_OF_ROLE, EventType, PositionRange, Record
from foldlog.core.message import Message, Role, TextPart
from foldlog.core.surface import surface_by_definition
from foldlog.importers.formats import IMPORTERS, Format, format_of
from foldlog.importers.log import Entry, Options
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Source

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.name for path in DATA.iterdir())
LINES_NAMES = [name for name in NAMES if name.endswith(".jsonl")]


def bytes_of(name: str) -> bytes:
    """Return one of the files here."""
    return (DATA / name).read_bytes()


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return the lines of one of the files here."""
    return [json.loads(line) for line in bytes_of(name).splitlines()]


def lines(rows: Iterable[object]) -> bytes:
    """Return JSON Lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def edited(name: str, change: Callable[[list[dict[str, Any]]], object]) -> bytes:
    """Return one of the files here, changed."""
    rows = rows_of(name)
    change(rows)
    return lines(rows)


@dataclass(frozen=True)
class Made:
    """What an importer made of a file."""

    format: Format
    session_id: str | None
    metadata: Any
    entries: list[Entry]
    report: Report

    @property
    def surface(self) -> list[tuple[int, Message]]:
        """The live messages, in order, each with its seq."""
        _, active = active_path([_record(entry) for entry in self.entries], -1)
        by_seq = {entry.seq: entry.event.body for entry in self.entries}
        found = ((each.seq, by_seq[each.seq]) for each in surface_by_definition(active))
        return [(seq, body) for seq, body in found if isinstance(body, Message)]

    @property
    def said(self) -> list[tuple[str, str]]:
        """The live messages as role and text."""
        return [(Role(m.role).name.lower(), text_of(m)) for _, m in self.surface]

    @property
    def customs(self) -> list[str]:
        """The kinds of the custom events, in order."""
        bodies = (entry.event.body for entry in self.entries)
        return [body.kind for body in bodies if isinstance(body, Custom)]

    def noted(self, kind: NoteKind) -> list[str]:
        """The notes of a kind, as they are told."""
        return [str(note) for note in self.report.notes if note.kind is kind]


def text_of(message: Message) -> str:
    """Return the texts of a message."""
    if isinstance(message.content, str):
        return message.content
    return "".join(p.text for p in message.content or () if isinstance(p, TextPart))


def read(data: bytes, format_: Format | None = None, *, salvage: bool = False) -> Made:
    """Read a file to its end."""
    found = format_ or format_of(Source(BytesIO(data)))
    report = Report(found.value)
    imported = IMPORTERS[found](Source(BytesIO(data)), report, Options(salvage=salvage))
    entries = list(imported.entries)
    metadata = json.loads(imported.metadata_json or "null")
    return Made(found, imported.session_id, metadata, entries, report)


def _record(entry: Entry) -> Record:
    body, range_ = entry.event.body, entry.event.replace
    assert range_ is None or isinstance(range_, PositionRange)
    if isinstance(body, Message):
        return Record(entry.seq, TYPE_OF_ROLE[Role(body.role)], range_)
    if isinstance(body, Rewind):
        return Record(entry.seq, EventType.REWIND, rewind_to=body.to_seq)
    return Record(entry.seq, EventType.CUSTOM)
