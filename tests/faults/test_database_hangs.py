"""PostgreSQL does not answer: a silent network, commits that wait for a standby, locked tables."""

from __future__ import annotations

import asyncio

import pytest

from tests.faults.databases import Database, tell_server
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.proxy import Proxy
from tests.faults.raging import ABANDONED, FORGETFUL, HOPEFUL, Fault, Inject, Serve, Take

# Short, so that a hang of seconds is longer than what the service waits.
IMPATIENT = {"FOLDLOG_COMMIT_TIMEOUT_S": "0.5", "FOLDLOG_STATEMENT_TIMEOUT_S": "1"}

SILENCE = Fault("the network to the database hangs", "a commit without an answer is not done")
NO_STANDBY = Fault("commits wait for a standby in vain", "requests are known again")
LOCKED = Fault("tables locked", "a commit that failed is not taken for done")


@pytest.fixture
def silence(proxy: Proxy, extent: Extent) -> Inject:
    """Keep all bytes back for a while, shorter or longer than is waited for; then pass or cut."""

    async def inject() -> None:
        proxy.stall()
        await asyncio.sleep(extent.random.uniform(0.2, 2))
        if extent.random.random() < 0.5:
            proxy.cut()
        proxy.resume()

    return inject


async def test_a_silent_network_loses_and_doubles_nothing(
    serve: Serve, database: Database, proxy: Proxy, silence: Inject, extent: Extent, report: Take
) -> None:
    served = serve("postgres", url=database.url_through(proxy.port), **IMPATIENT)
    proxy.delay_s = 0.001
    report(await SILENCE.storms(served, extent, silence))


async def test_control_a_commit_lost_in_a_silent_network_is_not_there(
    serve: Serve, database: Database, proxy: Proxy, silence: Inject, extent: Extent, control: Take
) -> None:
    served = serve("postgres", HOPEFUL, url=database.url_through(proxy.port), **IMPATIENT)
    outcome = await until_harm(
        lambda: SILENCE.rages(served, extent, silence, habits=ABANDONED), "lost"
    )
    control(outcome)
    assert outcome.lost > 0


@pytest.fixture
def no_standby(database: Database, extent: Extent) -> Inject:
    """Have commits wait for a standby that does not exist, longer than the service waits."""

    async def inject() -> None:
        await tell_server(database.server, "synchronous_standby_names", "nobody")
        await asyncio.sleep(extent.random.uniform(0.6, 2))
        await tell_server(database.server, "synchronous_standby_names", "")

    return inject


async def test_commits_that_wait_for_a_standby_are_made_once(
    serve: Serve, database: Database, no_standby: Inject, extent: Extent, report: Take
) -> None:
    served = serve("postgres", url=database.url, **IMPATIENT)
    report(await NO_STANDBY.storms(served, extent, no_standby))


async def test_control_retries_of_commits_that_wait_are_made_twice(
    serve: Serve, database: Database, no_standby: Inject, extent: Extent, control: Take
) -> None:
    served = serve("postgres", FORGETFUL, url=database.url, **IMPATIENT)
    outcome = await until_harm(
        lambda: NO_STANDBY.rages(served, extent, no_standby, habits=ABANDONED), "doubled"
    )
    control(outcome)
    assert outcome.doubled > 0


@pytest.fixture
def lock(database: Database, extent: Extent) -> Inject:
    """Lock a table against writing, or against reading too, for longer than is waited for."""

    async def inject() -> None:
        table = extent.random.choice(("foldlog_events", "foldlog_sessions", "foldlog_tracking"))
        mode = extent.random.choice(("EXCLUSIVE", "ACCESS EXCLUSIVE"))
        async with database.transaction() as other:
            await other.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())
            await asyncio.sleep(extent.random.uniform(0.2, 3))

    return inject


async def test_locked_tables_lose_and_double_nothing(
    serve: Serve, database: Database, lock: Inject, extent: Extent, report: Take
) -> None:
    served = serve("postgres", url=database.url, **IMPATIENT)
    report(await LOCKED.storms(served, extent, lock))


async def test_control_writes_that_a_lock_kept_out_are_not_there(
    serve: Serve, database: Database, extent: Extent, control: Take
) -> None:
    async def inject() -> None:
        async with database.transaction() as other:
            await other.execute("LOCK TABLE foldlog_events IN EXCLUSIVE MODE")
            await asyncio.sleep(2)

    served = serve("postgres", HOPEFUL, url=database.url, **IMPATIENT)
    outcome = await until_harm(lambda: LOCKED.rages(served, extent, inject, 1, ABANDONED), "lost")
    control(outcome)
    assert outcome.lost > 0
