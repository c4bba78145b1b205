"""One table of JSON, written and read with psycopg: what a user writes who takes no framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

from bench.workload import Json

TABLE: Final = """
    CREATE TABLE by_hand
    (session_id uuid, seq integer, data jsonb NOT NULL, PRIMARY KEY (session_id, seq))
"""
INSERT: Final = "INSERT INTO by_hand VALUES (%s, %s, %s)"
READ: Final = "SELECT data FROM by_hand WHERE session_id = %s ORDER BY seq"
COPY: Final = """
    INSERT INTO by_hand SELECT %s, seq, data FROM by_hand WHERE session_id = %s AND seq < %s
"""


class ByHand:
    """A row per message, a transaction per turn."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def prepare(self) -> None:
        """Make the table."""
        with psycopg.connect(self._url) as connection:
            connection.execute(TABLE)

    async def connect(self) -> None:
        """Connect."""
        self._connection = psycopg.connect(self._url, autocommit=True)

    async def session(self, session_id: str) -> Any:
        """Return the session's id and length."""
        return [session_id, await self.load(session_id)]

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Insert the rows of a turn, in one transaction."""
        session_id, length = session
        rows = [(session_id, length + at, Jsonb(each)) for at, each in enumerate(turn)]
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(INSERT, rows)
        session[1] += len(turn)

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Insert all rows in one transaction."""
        await self.append([session_id, 0], messages)

    async def load(self, session_id: str) -> int:
        """Read the rows as dictionaries."""
        return len(self._connection.execute(READ, [session_id]).fetchall())

    async def fork(self, session_id: str, at: int) -> None:
        """Copy the first rows."""
        self._connection.execute(COPY, [uuid4(), session_id, at])

    async def close(self) -> None:
        """Disconnect."""
        self._connection.close()
