"""PgBouncer in transaction mode, which dies and loses its connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from foldlog import Client, errors

from tests.faults.databases import Database
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.raging import ABANDONED, HOPEFUL, Fault, Inject, Serve, Take
from tests.pgbouncer import PgBouncer

POOLER = Fault(
    "PgBouncer in transaction mode dies", "a commit without an answer is not taken for done"
)
NAMED = "tests.faults.unsafe.named_statements"


@pytest.fixture
def pooler(database: Database) -> Iterator[PgBouncer]:
    """The pooler in front of the database."""
    pooler = PgBouncer(database.server.port)
    yield pooler
    pooler.stop()


@pytest.fixture
def break_pooler(database: Database, pooler: PgBouncer, extent: Extent) -> Inject:
    """Kill the pooler, or its connections to the server."""

    async def inject() -> None:
        if extent.random.random() < 0.5:
            await database.cut_all()
            return
        await asyncio.to_thread(pooler.kill)
        await asyncio.sleep(extent.random.uniform(0, 0.5))
        await asyncio.to_thread(pooler.start)

    return inject


async def test_behind_a_pooler_that_dies_nothing_is_lost_or_doubled(
    serve: Serve,
    database: Database,
    pooler: PgBouncer,
    break_pooler: Inject,
    extent: Extent,
    report: Take,
) -> None:
    served = serve("postgres", url=database.url_through(pooler.port))
    report(await POOLER.storms(served, extent, break_pooler, short=5))


async def test_control_commits_that_the_pooler_cut_are_not_there(
    serve: Serve,
    database: Database,
    pooler: PgBouncer,
    break_pooler: Inject,
    extent: Extent,
    control: Take,
) -> None:
    served = serve("postgres", HOPEFUL, url=database.url_through(pooler.port))
    outcome = await until_harm(
        lambda: POOLER.rages(served, extent, break_pooler, 4, ABANDONED), "lost"
    )
    control(outcome)
    assert outcome.lost > 0


def test_control_a_statement_prepared_by_name_is_not_found_behind_a_pooler(
    serve: Serve, database: Database, pooler: PgBouncer
) -> None:
    address = serve("postgres", NAMED, url=database.url_through(pooler.port)).address
    with Client(address) as client, ThreadPoolExecutor(16) as threads:
        creating = threads.map(client.create, map(str, range(200)))
        with pytest.raises(errors.InternalError):
            list(creating)
