"""Writes elements of an AppendStream with group commit and no domain.

Run as `python -m bench.servers.group URL`. What arrives while one insert commits is the next. The
loop itself speaks to PostgreSQL, by libpq's level of psycopg: of the designs tried the cheapest.
"""

from __future__ import annotations

import asyncio
import hashlib
import struct
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from foldlog._grpc import grpc
from foldlog.internal.v1.raw_pb2 import RawAppendStreamRequest
from foldlog.persistence.postgres.arrays import BYTEA, UUID, ElementType, array
from foldlog.v1.service_pb2 import AppendEventsResponse, AppendStreamResponse
from psycopg import pq

from bench.servers.bare import serve

TABLE: Final = """
    CREATE TABLE IF NOT EXISTS grouped
    (session_id uuid, seq integer, data bytea NOT NULL, PRIMARY KEY (session_id, seq))
"""
INSERT: Final = b"INSERT INTO grouped SELECT * FROM unnest($1, $2, $3)"
NAME: Final = b"grouped"
INTEGER: Final = ElementType(23, 1007)
TYPES: Final = [UUID.array_oid, INTEGER.array_oid, BYTEA.array_oid]
FORMATS: Final = [pq.Format.BINARY] * len(TYPES)
_integer = struct.Struct("!i").pack


def prepare(libpq: pq.abc.PGconn) -> None:
    """Prepare the insert on a connection."""
    libpq.prepare(NAME, INSERT, TYPES)


def encoded(
    sessions: Sequence[bytes], seqs: Iterable[int], data: Sequence[bytes]
) -> Sequence[bytes]:
    """Return the columns of rows as the insert takes them."""
    numbers = [_integer(each) for each in seqs]
    return [array(UUID, sessions), array(INTEGER, numbers), array(BYTEA, data)]


def insert(
    libpq: pq.abc.PGconn, sessions: Sequence[bytes], seqs: Iterable[int], data: Sequence[bytes]
) -> None:
    """Insert rows on a connection that has it prepared; they are durable on return."""
    values = encoded(sessions, seqs, data)
    require_done(libpq.exec_prepared(NAME, values, FORMATS, pq.Format.BINARY))


def require_done(result: pq.abc.PGresult) -> None:
    """Exit with PostgreSQL's own words unless a command was done."""
    if result.status != pq.ExecStatus.COMMAND_OK:
        sys.exit(result.error_message.decode())


@dataclass(frozen=True, slots=True)
class Row:
    """One message of a session."""

    session: bytes
    seq: int
    data: bytes


class Committer:
    """Commits rows in groups over one connection that never blocks the loop."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute(TABLE)
        self._libpq = self._connection.pgconn
        prepare(self._libpq)
        self._libpq.nonblocking = 1
        self._waiting: list[tuple[Sequence[Row], asyncio.Future[None]]] = []
        self._committing: list[tuple[Sequence[Row], asyncio.Future[None]]] = []
        self._is_due = False
        self._loop.add_reader(self._libpq.socket, self._read)

    def write(self, rows: Sequence[Row]) -> asyncio.Future[None]:
        """Return what is done once the rows are durable."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((rows, done))
        if not self._is_due:
            self._is_due = True
            # After the others that this turn of the loop brings.
            self._loop.call_soon(self._send)
        return done

    def _send(self) -> None:
        self._committing, self._waiting = self._waiting, []
        rows = [row for group, _ in self._committing for row in group]
        values = encoded(
            [row.session for row in rows], [row.seq for row in rows], [row.data for row in rows]
        )
        self._libpq.send_query_prepared(NAME, values, FORMATS, pq.Format.BINARY)
        self._flush()

    def _flush(self) -> None:
        if self._libpq.flush():
            self._loop.add_writer(self._libpq.socket, self._flush)
        else:
            self._loop.remove_writer(self._libpq.socket)

    def _read(self) -> None:
        self._libpq.consume_input()
        while not self._libpq.is_busy():
            result = self._libpq.get_result()
            if result is None:
                self._committed()
                return
            require_done(result)

    def _committed(self) -> None:
        done, self._committing = self._committing, []
        self._is_due = bool(self._waiting)
        if self._is_due:
            self._send()
        for _, future in done:
            future.set_result(None)


class GroupCommit:
    """The stream: elements in, answers out in the order of the elements."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._committer: Committer | None = None
        self._next_seq: dict[str, int] = defaultdict(int)

    async def stream(self, elements: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Answer each element once it is durable."""
        on_their_way: asyncio.Queue[tuple[AppendStreamResponse, asyncio.Future[None]] | None]
        on_their_way = asyncio.Queue()

        async def read() -> None:
            async for element in elements:
                on_their_way.put_nowait(self._take(element))
            on_their_way.put_nowait(None)

        reading = asyncio.create_task(read())
        while (taken := await on_their_way.get()) is not None:
            answer, done = taken
            await done
            yield answer
        await reading

    def _take(
        self, element: RawAppendStreamRequest
    ) -> tuple[AppendStreamResponse, asyncio.Future[None]]:
        if self._committer is None:
            self._committer = Committer(self._url)
        batch = element.batch
        session = hashlib.md5(batch.session_id.encode()).digest()
        first = self._next_seq[batch.session_id]
        rows = [Row(session, first + at, each.body) for at, each in enumerate(batch.events)]
        self._next_seq[batch.session_id] = first + len(rows)
        appended = AppendEventsResponse(first_seq=first, next_seq=first + len(rows))
        answer = AppendStreamResponse(number=element.number, appended=appended)
        return answer, self._committer.write(rows)


if __name__ == "__main__":
    handler = grpc.stream_stream_rpc_method_handler(
        GroupCommit(sys.argv[1]).stream,
        RawAppendStreamRequest.FromString,
        AppendStreamResponse.SerializeToString,
    )
    serve({"Stream": handler})
