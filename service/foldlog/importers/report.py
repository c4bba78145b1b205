"""What an import found: what was read, what was not taken as it stood, and where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

NOTES_KEPT: Final = 1_000


class NoteKind(StrEnum):
    """Why something is worth a note."""

    CUT = "cut"
    """The end of the file is torn: what it held is not known, and was left out."""
    DAMAGED = "damaged"
    """It makes no sense, and --salvage left it out."""
    UNREPRESENTED = "unrepresented"
    """The log has no form for it: it is kept as a custom event, as it was."""
    CHANGED = "changed"
    """It could not be kept to the letter; a custom event beside it holds it as it was."""
    UNDONE = "undone"
    """It is not on the main line: it is in the log, and a rewind undoes it."""
    ASSUMED = "assumed"
    """The file does not say; this was taken for true."""


@dataclass(frozen=True, slots=True)
class Note:
    """One finding, and the line of the file it is about; None for all of it."""

    kind: NoteKind
    line: int | None
    text: str

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}: "
        return f"{where}{self.text}"


@dataclass(slots=True)
class Report:
    """Fills as the events of a file are taken from an importer; whole once they are exhausted.

    `read` counts the file's elements by type, `made` the events by type. Of the notes the first
    1,000 are kept; `noted` counts all of them by kind.
    """

    format: str
    lines: int = 0
    read: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    notes: list[Note] = field(default_factory=list)
    noted: Counter[str] = field(default_factory=Counter)

    def note(self, kind: NoteKind, line: int | None, text: str) -> None:
        """Take down a finding."""
        self.noted[kind] += 1
        if len(self.notes) < NOTES_KEPT:
            self.notes.append(Note(kind, line, text))

    @property
    def unkept(self) -> int:
        """How many notes there were beyond those kept."""
        return self.noted.total() - len(self.notes)

    def document(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "format": self.format,
            "lines": self.lines,
            "read": dict(self.read),
            "events": dict(self.made),
            "noted": dict(self.noted),
            "notes": [
                {"kind": each.kind.value, "line": each.line, "text": each.text}
                for each in self.notes
            ],
        }
