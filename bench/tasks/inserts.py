"""Rows written by hand: what a worker's own process does at best without any service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle, islice
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

from bench import workload
from bench.crew import Gate, Stopwatch, Tally

TABLE: Final = """
    CREATE TABLE IF NOT EXISTS by_hand
    (session_id uuid, seq integer, data jsonb NOT NULL, PRIMARY KEY (session_id, seq))
"""
INSERT: Final = "INSERT INTO by_hand VALUES (%s, %s, %s)"
WARM_UP: Final = 16
VARIETY: Final = 256


def rows(seed: int) -> Iterator[Jsonb]:
    """Yield messages without end as what is to be written of them."""
    return cycle([Jsonb(each) for each in workload.messages(VARIETY, seed)])


class Insert:
    """A connection in autocommit that inserts rows one by one under a session of its own."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._cursor = connection.cursor()
        self._session = uuid4()
        self._seqs = count()

    @classmethod
    @contextmanager
    def connected(cls, url: str) -> Iterator[Insert]:
        """Lend one, connected."""
        with psycopg.connect(url, autocommit=True) as connection:
            yield cls(connection)

    def one(self, data: Jsonb) -> None:
        """Write one row, durable on return."""
        self._cursor.execute(INSERT, (self._session, next(self._seqs), data), prepare=True)


@dataclass(frozen=True, slots=True)
class Inserts:
    """A row of JSON per message, each committed by itself, one session per worker."""

    url: str
    seed: int
    seconds: float

    def __call__(self, gate: Gate) -> Tally:
        written = rows(self.seed)
        with Insert.connected(self.url) as insert:
            for row in islice(written, WARM_UP):
                insert.one(row)
            gate()
            watch = Stopwatch(self.seconds)
            while watch.is_running():
                row, started = next(written), time.perf_counter()
                insert.one(row)
                watch.took(started)
            return watch.stop()
