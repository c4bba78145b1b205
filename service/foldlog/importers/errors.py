"""Why a file cannot be imported."""

from __future__ import annotations


class UnreadableFileError(Exception):
    """The file cannot be imported, and nothing was. Its text is one line for people."""


class DamagedFileError(UnreadableFileError):
    """The file stops making sense at a line, and more follows."""

    def __init__(self, line: int, why: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {why}")
