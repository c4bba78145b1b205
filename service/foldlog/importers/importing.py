"""One import, from a file to a session: all of it or nothing, and the same file twice is once."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import BinaryIO, Final

from foldlog.client.client import Client
from foldlog.core.errors import InvalidFieldError, SessionNotFoundError, TooLargeError
from foldlog.importers import export_file
from foldlog.importers.errors import UnreadableFileError
from foldlog.importers.export_file import Rendered
from foldlog.importers.formats import IMPORTERS, Format, format_of
from foldlog.importers.log import Entry, Options
from foldlog.importers.report import Report
from foldlog.importers.source import Source

# Part of the request id: what another release makes of a file is another request.
IMPORTERS_VERSION: Final = "1"
NAMED_LINE: Final = re.compile(r"line (\d+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an import. `was_there` says that an earlier run had made the session."""

    session_id: str
    next_seq: int
    report: Report
    was_there: bool = False


@dataclass(slots=True)
class Import:
    """A file on its way in. Files are read more than once, so they are to be seekable.

    The session's id is the one given, else the file's, else one made from its content. The request
    id comes from both, so that the same file under the same id is the same request: repeating it
    changes nothing, and finishes what was cut off.
    """

    file: BinaryIO
    format: Format = Format.AUTO
    session_id: str | None = None
    salvage: bool = False
    told: Callable[[int], None] = field(default=lambda size: None)
    report: Report = field(default_factory=lambda: Report(""))
    _source_lines: array[int] = field(default_factory=lambda: array("q"))

    def dry_run(self) -> Outcome:
        """Read the whole file and say what would be made of it. Makes no call.

        Of an export the lines are counted; the service alone judges them.
        """
        session_id, lines = self._prepared()
        next_seq = 0
        for data in lines:
            if b'"next_seq"' in data[-200:]:
                next_seq = int(export_file.fields_of(data).get("next_seq", 0))
        return Outcome(session_id, next_seq, self.report)

    def run(self, client: Client, request_id: str | None = None) -> Outcome:
        """Make the session. Raises UnreadableFileError, SessionExistsError and the service's."""
        session_id, lines = self._prepared()
        was_there = _exists(client, session_id)
        begun = [lines]
        source = Rendered(lambda: begun.pop() if begun else self._prepared()[1])
        try:
            made = client.import_session(
                source.as_file(),
                session_id=session_id,
                request_id=request_id or self._request_id(session_id),
            )
        except (InvalidFieldError, TooLargeError) as error:
            raise UnreadableFileError(self._renumbered(str(error))) from None
        return Outcome(made.session_id, made.next_seq or 0, self.report, was_there)

    def _prepared(self) -> tuple[str, Iterator[bytes]]:
        """Begin to read the file: return the session's id, and the lines to send."""
        source = Source(self.file, self.told)
        if self.format is Format.AUTO:
            self.format = format_of(Source(self.file))
        self.report = Report(self.format.value)
        del self._source_lines[:]
        if self.format is Format.FOLDLOG:
            return self._export(source)
        imported = IMPORTERS[self.format](
            source, self.report, Options(self.session_id, self.salvage)
        )
        session_id = self.session_id or imported.session_id or f"import-{self._digest()[:32]}"
        return session_id, export_file.lines_of(imported, session_id, self._placed)

    def _export(self, source: Source) -> tuple[str, Iterator[bytes]]:
        if self.salvage:
            lines = export_file.salvaged(source, self.report)
        else:
            lines = self._verbatim(source)
        first = next(iter(Source(self.file).lines()), None)
        if first is None:
            raise UnreadableFileError("it is empty")
        named = export_file.fields_of(first.data)
        session_id = named.get("session_id")
        if not isinstance(session_id, str) or not session_id:
            raise UnreadableFileError("line 1: it is not the header of a Foldlog export")
        return self.session_id or session_id, lines

    def _verbatim(self, source: Source) -> Iterator[bytes]:
        for line in source.lines():
            self.report.lines = line.number
            self.report.read["export lines"] += 1
            yield line.data + b"\n" * line.is_ended

    def _placed(self, entry: Entry) -> None:
        self._source_lines.append(entry.line)

    def _digest(self) -> str:
        return Source(self.file).digest()

    def _request_id(self, session_id: str) -> str:
        how = (IMPORTERS_VERSION, self.format.value, str(self.salvage), session_id, self._digest())
        return f"import-{sha256(chr(0).join(how).encode()).hexdigest()}"

    def _renumbered(self, text: str) -> str:
        """Return an error of the service with the lines of the file in place of those sent."""
        if self.format is Format.FOLDLOG:
            return text
        return NAMED_LINE.sub(self._source_line, text)

    def _source_line(self, found: re.Match[str]) -> str:
        index = int(found[1]) - 2
        is_known = 0 <= index < len(self._source_lines)
        return f"line {self._source_lines[index]}" if is_known else found[0]


def _exists(client: Client, session_id: str) -> bool:
    try:
        client.get(session_id)
    except SessionNotFoundError:
        return False
    return True
