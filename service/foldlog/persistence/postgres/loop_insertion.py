"""The insert on the event loop: no thread is woken for a commit, and none takes the lock of Python.

A connection of the pool is kept for it. What it takes to have one, or to make a new one, blocks,
and so a thread does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from time import monotonic

from eventsourcing.persistence import StoredEvent
from psycopg import generators, waiting

from foldlog.persistence.postgres.bounded import GaveUpError
from foldlog.persistence.postgres.connections import PooledConnection, PostgresConnections
from foldlog.persistence.postgres.insertion import insertion_order, place_of, send, sound
from foldlog.persistence.recorder import LoopInserter, OnThread


class PostgresLoopInserter(LoopInserter):
    """Inserts what one statement takes. One insert at a time; from one loop."""

    def __init__(
        self, datastore: PostgresConnections, prepare: Callable[[PooledConnection], None]
    ) -> None:
        self._datastore = datastore
        self._prepare = prepare
        self._kept: tuple[AbstractContextManager[PooledConnection], PooledConnection] | None = None

    async def insert(self, rows: Sequence[StoredEvent], on_thread: OnThread) -> int:
        if self._is_stale():
            await on_thread(self._renew)
        assert self._kept is not None
        _, connection = self._kept
        ordered = [rows[place] for place in insertion_order(rows)]
        try:
            base = await self._inserted(connection, ordered)
        except BaseException as error:
            await on_thread(self._give_back, error)
            raise
        connection.returned_at = monotonic()
        return base | (len(rows) - 1)

    async def _inserted(self, connection: PooledConnection, rows: Sequence[StoredEvent]) -> int:
        libpq = connection.pgconn
        send(connection, rows, self._datastore.xid_offset, 0, is_prepared=connection.has_prepared)
        patience_s = self._datastore.timeouts.commit_s
        answer = generators.execute(libpq)
        try:
            async with asyncio.timeout(patience_s):
                results = await waiting.wait_async(answer, libpq.socket, patience_s)
        except TimeoutError as error:
            connection.close()
            raise GaveUpError(f"no answer within {patience_s} s") from error
        except BaseException:
            connection.close()  # a statement without its answer: nobody else is to get that
            raise
        return place_of(sound(libpq, results))

    def _is_stale(self) -> bool:
        """Tell whether the connection may have been cut off while it rested, or there is none."""
        if self._kept is None:
            return True
        return self._datastore.is_suspect(self._kept[1]) or self._datastore.has_many_unended

    def _renew(self) -> None:
        """Take a connection that was found to work."""
        self.close()
        lending = self._datastore.committing()
        connection = lending.__enter__()
        self._kept = lending, connection
        try:
            self._prepare(connection)
        except BaseException as error:
            self._give_back(error)
            raise
        connection.returned_at = monotonic()

    def _give_back(self, error: BaseException) -> None:
        """Let the pool judge a connection that something went wrong on; raises that as ours."""
        assert self._kept is not None
        (lending, _), self._kept = self._kept, None
        lending.__exit__(type(error), error, error.__traceback__)

    def close(self) -> None:
        if self._kept is not None:
            (lending, _), self._kept = self._kept, None
            lending.__exit__(None, None, None)
