"""The newest rows of a session, in memory for those who watch it."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from foldlog.internal.v1.storage_pb2 import Envelope

MAX_ROWS = 64
MAX_BYTES = 1024 * 1024


class TailRow(NamedTuple):
    """A row: its version, its topic and what it holds."""

    version: int
    topic: str
    envelope: Envelope


class Tail:
    """Rows of consecutive versions, few and small: who needs others reads them from the store."""

    def __init__(self) -> None:
        self._rows: deque[TailRow] = deque()
        self._size_bytes = 0

    def keep(self, row: TailRow) -> None:
        """Add the next row, and let older ones go where they become too many or too large."""
        self._rows.append(row)
        self._size_bytes += len(row.envelope.body)
        while len(self._rows) > MAX_ROWS or self._size_bytes > MAX_BYTES:
            self._size_bytes -= len(self._rows.popleft().envelope.body)

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()
        self._size_bytes = 0

    def after(self, version: int) -> list[TailRow]:
        """Return the rows from the version behind on, or none where it is not known."""
        known = [row for row in self._rows if row.version > version]
        return known if known and known[0].version == version + 1 else []
