"""Importers: files of other systems, and exports, into sessions. Client side only."""

from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.formats import Format, format_of
from foldlog.importers.importing import Import, Outcome
from foldlog.importers.report import Note, NoteKind, Report

__all__ = [
    "DamagedFileError",
    "Format",
    "Import",
    "Note",
    "NoteKind",
    "Outcome",
    "Report",
    "UnreadableFileError",
    "format_of",
]
