"""A file to import: read line by line, as often as it takes, in memory that does not grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import BinaryIO, Final

from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.json_value import Parsed, parsed
from foldlog.importers.report import NoteKind, Report

MIB: Final = 1024 * 1024
LINE_BYTES_AT_MOST: Final = 64 * MIB
DOCUMENT_BYTES_AT_MOST: Final = 1024 * MIB
PIECE_BYTES: Final = MIB
WHY_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its newline. `is_ended` says whether it has one; numbers begin with 1."""

    number: int
    offset: int
    data: bytes
    is_ended: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A line that is a JSON object. `is_altered` says that `fields` do not say all it says."""

    line: Line
    fields: dict[str, object]
    is_altered: bool = False

    @property
    def number(self) -> int:
        """The line's number."""
        return self.line.number

    @property
    def kind(self) -> str:
        """Its `type`, or what stands for one."""
        kind = self.fields.get("type")
        return kind if isinstance(kind, str) and kind else "untyped"


class Salvage(Enum):
    """What is taken of a file with damage in its middle."""

    NOTHING = "nothing"
    BEFORE = "before"
    AROUND = "around"


@dataclass(slots=True)
class Source:
    """A seekable file of bytes. `told` hears how many bytes were read, each time some were."""

    file: BinaryIO
    told: Callable[[int], None] = field(default=lambda size: None)

    @property
    def size_bytes(self) -> int:
        """How long the file is."""
        return self.file.seek(0, 2)

    def head(self, size: int) -> bytes:
        """Return the first bytes."""
        self.file.seek(0)
        return self.file.read(size)

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes in hexadecimal digits."""
        digest = sha256()
        self.file.seek(0)
        while piece := self.file.read(PIECE_BYTES):
            digest.update(piece)
        return digest.hexdigest()

    def whole(self) -> bytes:
        """Return all of it. Raises UnreadableFileError for a file that no memory should hold."""
        if self.size_bytes > DOCUMENT_BYTES_AT_MOST:
            raise UnreadableFileError(
                f"one JSON document of {self.size_bytes} bytes is more than"
                f" {DOCUMENT_BYTES_AT_MOST}; write it as JSON Lines"
            )
        self.file.seek(0)
        data = self.file.read()
        self.told(len(data))
        return data

    def lines(self) -> Iterator[Line]:
        """Yield the lines. Others may read the file meanwhile.

        Raises DamagedFileError for a line longer than any can be.
        """
        number = offset = 0
        while data := self._line_at(offset):
            number += 1
            self.told(len(data))
            body = data.removesuffix(b"\n")
            if len(body) > LINE_BYTES_AT_MOST:
                raise DamagedFileError(number, f"it is longer than {LINE_BYTES_AT_MOST} bytes")
            yield Line(number, offset, body, len(body) < len(data))
            offset += len(data)

    def line_at(self, line: Line | int) -> bytes:
        """Return the line that begins at an offset, without its newline."""
        offset = line if isinstance(line, int) else line.offset
        return self._line_at(offset).removesuffix(b"\n")

    def _line_at(self, offset: int) -> bytes:
        if self.file.tell() != offset:
            self.file.seek(offset)
        return self.file.readline(LINE_BYTES_AT_MOST + 2)

    def rows(
        self,
        report: Report,
        salvage: Salvage = Salvage.NOTHING,
        *,
        blank_is_damage: bool = False,
        unended_is_torn: bool = False,
    ) -> Iterator[Row]:
        """Yield the lines that are JSON objects.

        A last line that has no newline and makes no sense is cut, one that has none at all is if
        `unended_is_torn`. Blank lines are passed over. Raises DamagedFileError for any other line,
        unless it is to be left out, alone or with all that follows.
        """
        for line in self.lines():
            report.lines = line.number
            if not blank_is_damage and line.is_ended and not line.data.strip():
                report.read["blank lines"] += 1
                continue
            row = _row(line, report)
            is_torn = not line.is_ended and (unended_is_torn or isinstance(row, str))
            if is_torn:
                why = f"the file ends in the middle of it: {len(line.data)} bytes are cut"
                report.note(NoteKind.CUT, line.number, why)
            elif isinstance(row, Row):
                yield row
            else:
                self.damaged(line.number, row, report, salvage)
                if salvage is Salvage.BEFORE:
                    return

    def damaged(self, number: int, why: str, report: Report, salvage: Salvage) -> None:
        """Take note of damage that is left out. Raises DamagedFileError where it must not be."""
        if salvage is Salvage.NOTHING:
            raise DamagedFileError(number, why)
        report.note(NoteKind.DAMAGED, number, f"left out: {why}")
        if salvage is Salvage.BEFORE:
            report.lines = sum(1 for _ in self.lines())
            if left := report.lines - number:
                text = f"left out with all that follows: {left} more lines"
                report.note(NoteKind.DAMAGED, number + 1, text)


def _row(line: Line, report: Report) -> Row | str:
    """Return the row of a line, or why it is none."""
    try:
        found = parsed(line.data)
    except ValueError as error:
        return f"it is not JSON: {str(error)[:WHY_SHOWN]}"
    if not isinstance(found.value, dict):
        return "it is not a JSON object"
    note_alterations(found, line.number, report)
    return Row(line, found.value, bool(found.alterations))


def note_alterations(found: Parsed, number: int, report: Report) -> None:
    """Take note of how a parsed value differs from its text."""
    for alteration in found.alterations:
        report.note(NoteKind.CHANGED, number, alteration)
