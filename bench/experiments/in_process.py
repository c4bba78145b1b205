"""500 sessions that write at once, in process, beside bare inserts of the same rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, Final
from uuid import uuid4

import psycopg
import uvloop
from foldlog.application.application import SessionApplication
from foldlog.application.tenant import Tenant
from foldlog.internal.v1.raw_pb2 import RawNewEvent
from foldlog.persistence.postgres.arrays import BIGINT, BYTEA, TEXT, array, bigints
from foldlog.persistence.postgres.arrays import UUID as UUIDS
from foldlog.persistence.store import open_store
from foldlog.settings import Settings
from psycopg import pq

from bench import encoding, workload
from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Ground
from bench.samples import Sample
from tests.integration.observed import append

SESSIONS: Final = 500
SECONDS: Final = 2.0
STATES: Final = "SELECT state FROM foldlog_events ORDER BY notification_id DESC LIMIT %s"
BARE: Final = "CREATE TABLE bare (LIKE foldlog_events INCLUDING ALL)"
INSERT: Final = b"""
    INSERT INTO bare (tenant, originator_id, originator_version, topic, state, notification_id)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
"""
KINDS: Final = (TEXT, UUIDS, BIGINT, TEXT, BYTEA, BIGINT)
NAME: Final = b"bare"


class Bare:
    """Inserts rows like ours, as many at a time as there are sessions, as binary arrays."""

    def __init__(self, connection: psycopg.Connection[Any], states: Sequence[bytes]) -> None:
        connection.execute(BARE)
        self._libpq = connection.pgconn
        self._libpq.prepare(NAME, INSERT, [each.array_oid for each in KINDS])
        self._states = states
        self._place = 0

    def insert(self) -> None:
        """Insert one batch, durable on return."""
        count = len(self._states)
        values = [
            array(TEXT, [b"default"] * count),
            array(UUIDS, [uuid4().bytes for _ in range(count)]),
            bigints([1] * count),
            array(TEXT, [b"message"] * count),
            array(BYTEA, self._states),
            bigints(range(self._place, self._place + count)),
        ]
        self._place += count
        formats = [pq.Format.BINARY] * len(values)
        done = self._libpq.exec_prepared(NAME, values, formats, pq.Format.BINARY)
        assert done.status == pq.ExecStatus.COMMAND_OK, done.error_message


def events(seed: int) -> Iterator[RawNewEvent]:
    """Yield the workload's events as the application takes them."""
    for turn in workload.turns(seed):
        for each in turn:
            yield RawNewEvent.FromString(encoding.event(each).SerializeToString())


async def written(tenant: Tenant, ids: Sequence[str]) -> int:
    """Let every session append, one after the other, all at once; return how many rows."""
    given = [list(islice(events(seed), 8)) for seed in range(8)]
    stop = time.perf_counter() + SECONDS

    async def session(place: int) -> int:
        count = 0
        while time.perf_counter() < stop:
            await append(tenant, ids[place], [given[place % 8][count % 8]])
            count += 1
        return count

    return sum(await asyncio.gather(*(session(place) for place in range(len(ids)))))


def at_once(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """The application in this process, and the same rows inserted by hand."""
    url = ground.migrated()
    runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
    store = open_store(url)
    stack.callback(store.close)
    app = SessionApplication(store, Settings(database_url=url))
    stack.callback(lambda: runner.run(app.stop()))
    tenant = app.tenant()
    ids = [str(uuid4()) for _ in range(SESSIONS)]

    async def create() -> None:
        for each in ids:
            await tenant.writing.create(each, "", {}, "")

    def through_foldlog() -> Sample:
        started = time.perf_counter()
        count = runner.run(written(tenant, ids))
        return {"per_s": count / (time.perf_counter() - started)}

    runner.run(create())
    through_foldlog()
    connection = stack.enter_context(psycopg.connect(url, autocommit=True))
    states = [row[0] for row in connection.execute(STATES, [SESSIONS], binary=True).fetchall()]
    bare = Bare(connection, states)

    def by_hand() -> Sample:
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < SECONDS:
            bare.insert()
            count += SESSIONS
        return {"per_s": count / (time.perf_counter() - started)}

    return {"foldlog": through_foldlog, "multi-row INSERT": by_hand}


EXPERIMENTS: Final = (
    Experiment(
        "in-process",
        "500 sessions writing at once, through the application layer in process",
        at_once,
        (
            Goal(
                "500 sessions writing at once, in process: rows per second",
                "multi-row INSERT of the same rows",
                quotient("foldlog", "multi-row INSERT", "per_s"),
                least=0.3,
            ),
        ),
        rounds=5,
    ),
)
