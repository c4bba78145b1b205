"""Sends the stored rows of a session as they are: `python -m bench.servers.load URL`.

What any server has to do to load a session: read its rows, and put them on the wire in pieces.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

import psycopg
from foldlog._grpc import grpc

from bench import wire
from bench.servers.bare import serve

ROWS: Final = """
    SELECT state FROM foldlog_events WHERE originator_id = %s ORDER BY originator_version
"""
PIECE: Final = 500


class Loading:
    """Reads in a thread, over one connection."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    async def load(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Send the rows of the aggregate whose 16 bytes are asked for."""
        rows = await asyncio.to_thread(self._rows, UUID(bytes=request))
        for start in range(0, len(rows), PIECE):
            yield b"".join(wire.field(1, row[0]) for row in rows[start : start + PIECE])

    def _rows(self, aggregate_id: UUID) -> list[Any]:
        with self._connection.cursor(binary=True) as cursor:
            return cursor.execute(ROWS, [aggregate_id], prepare=True).fetchall()


if __name__ == "__main__":
    serve({"Load": grpc.unary_stream_rpc_method_handler(Loading(sys.argv[1]).load)})
