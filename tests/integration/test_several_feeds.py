"""The feeds of several processes on one PostgreSQL: what one does is not done by each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from foldlog.application.feed import INDEX_EVERY_S
from foldlog.internal.v1.storage_pb2 import Envelope

from tests import postgres
from tests.integration.observed import Observation, append, observed, said

SECONDS = 4.0
LISTENING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND query = 'LISTEN foldlog'
"""


@pytest.fixture
def url() -> Iterator[str]:
    with postgres.database() as found:
        yield found


@asynccontextmanager
async def following(url: str) -> AsyncIterator[Observation]:
    """Give an application, as one process has it, whose feed is started."""
    async with observed(url) as seen:
        await seen.app.start()
        yield seen


def listeners(url: str) -> int:
    """Return how many connections to the database listen."""
    with psycopg.connect(url) as connection:
        row = connection.execute(LISTENING).fetchone()
    assert row is not None
    return int(row[0])


def is_indexed(seen: Observation) -> bool:
    """Tell whether the index, as it is stored, has every row."""
    store = seen.app.store
    return store.index.position() == store.recorder.last_stored_id()


async def until_indexed(seen: Observation) -> None:
    """Wait for the index without asking for it, which would hurry it on."""
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(is_indexed, seen):
            await asyncio.sleep(0.05)


async def test_one_process_reads_the_rows_for_the_index(url: str) -> None:
    async with following(url) as one, following(url) as other:
        for name, seen in (("a", one), ("b", other)):
            await seen.tenant.writing.create(name, "", {}, "")
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        while (took_s := loop.time() - started_s) < SECONDS:
            await append(one.tenant, "a", [said(2, "of the one")])
            await append(other.tenant, "b", [said(2, "of the other")])
            await asyncio.sleep(0.02)
        read = [seen.calls["select_notifications"] for seen in (one, other)]
        await until_indexed(one)
    # Each process for itself would read twice as often.
    assert sum(read) <= 1.3 * took_s / INDEX_EVERY_S + 4


async def test_another_goes_on_when_the_one_that_indexed_is_gone(url: str) -> None:
    async with following(url) as stays:
        await stays.tenant.writing.create("a", "", {}, "")
        async with following(url) as goes:
            for count in range(20):
                await append(goes.tenant, "a", [said(2, f"message {count}")])
                await asyncio.sleep(0.05)
        for _ in range(3):
            await append(stays.tenant, "a", [said(2, "after")])
            await until_indexed(stays)


async def test_nobody_listens_or_reads_what_changed_until_somebody_watches(url: str) -> None:
    async with following(url) as one, following(url) as other:
        await one.tenant.writing.create("a", "", {}, "")
        await append(one.tenant, "a", [said(2, "before")])
        await until_indexed(other)
        assert listeners(url) == 0
        assert not one.calls["select_changes"] + other.calls["select_changes"]
        watch = other.tenant.watching.watch("a", 0)
        told = 0
        while told < 5:
            told += isinstance(await anext(watch), Envelope)
            await append(one.tenant, "a", [said(2, "while it is watched")])
        assert listeners(url) == 1
        assert other.calls["select_changes"]
        assert not one.calls["select_changes"]
