"""PostgreSQL crashes, its connections are cut, and its answers are lost."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.faults.databases import Database, tell_server
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.proxy import Loss, Proxy
from tests.faults.raging import ABANDONED, FORGETFUL, HOPEFUL, Fault, Inject, Serve, Take

CRASH = Fault("PostgreSQL crashes", "commits wait for the disk")
CUT = Fault("database connections cut", "a commit without an answer is not taken for done")
LOSS = Fault("answers of the database lost", "requests are known again")


@pytest.fixture
def crash(database: Database, extent: Extent) -> Inject:
    """Kill the database server in one of two ways, and start it again."""

    async def inject() -> None:
        how = extent.random.choice((signal.SIGKILL, signal.SIGQUIT))
        await asyncio.to_thread(database.server.crash, how)
        await asyncio.sleep(extent.random.uniform(0, 0.5))
        await asyncio.to_thread(database.server.start)

    return inject


async def test_what_was_acknowledged_outlives_a_crash_of_the_database(
    serve: Serve, database: Database, crash: Inject, extent: Extent, report: Take
) -> None:
    served = serve("postgres", url=database.url)
    report(await CRASH.storms(served, extent, crash))


async def test_control_commits_that_do_not_wait_for_the_disk_are_lost(
    serve: Serve, database: Database, crash: Inject, extent: Extent, control: Take
) -> None:
    await database.set("synchronous_commit", "off")
    await tell_server(database.server, "wal_writer_delay", "10s")
    served = serve("postgres", url=database.url)
    outcome = await until_harm(lambda: CRASH.rages(served, extent, crash, habits=ABANDONED), "lost")
    control(outcome)
    assert outcome.lost > 0


@pytest.fixture
def cut(database: Database, proxy: Proxy, extent: Extent) -> Inject:
    """Cut every connection from one side or the other, now or a moment later."""

    async def inject() -> None:
        await asyncio.sleep(extent.random.uniform(0, 0.05))
        if extent.random.random() < 0.5:
            proxy.cut()
        else:
            await database.cut_all()

    return inject


async def test_connections_that_are_cut_lose_and_double_nothing(
    serve: Serve, database: Database, proxy: Proxy, cut: Inject, extent: Extent, report: Take
) -> None:
    served = serve("postgres", url=database.url_through(proxy.port))
    report(await CUT.storms(served, extent, cut, short=8, long=600))


async def test_control_cut_commits_that_are_taken_for_done_are_lost(
    serve: Serve, database: Database, proxy: Proxy, cut: Inject, extent: Extent, control: Take
) -> None:
    served = serve("postgres", HOPEFUL, url=database.url_through(proxy.port))
    outcome = await until_harm(lambda: CUT.rages(served, extent, cut, 4, ABANDONED), "lost")
    control(outcome)
    assert outcome.lost > 0


@pytest.fixture
def lose(proxy: Proxy, extent: Extent) -> Inject:
    """Lose the answers of five writes, each at one of three points."""

    async def inject() -> None:
        until = proxy.lost + 5
        ways = (*Loss, *[None] * 6)
        proxy.lose(lambda: extent.random.choice(ways))
        while proxy.lost < until:
            await asyncio.sleep(0.005)
        proxy.lose(lambda: None)

    return inject


async def test_a_commit_whose_answer_is_lost_is_made_once_and_is_no_conflict(
    serve: Serve, database: Database, proxy: Proxy, lose: Inject, extent: Extent, report: Take
) -> None:
    served = serve("postgres", url=database.url_through(proxy.port))
    report(await LOSS.storms(served, extent, lose, short=6, long=600))


async def test_control_a_request_that_is_not_known_again_is_made_twice(
    serve: Serve, database: Database, proxy: Proxy, lose: Inject, extent: Extent, control: Take
) -> None:
    served = serve("postgres", FORGETFUL, url=database.url_through(proxy.port))
    outcome = await until_harm(
        lambda: LOSS.rages(served, extent, lose, habits=ABANDONED), "doubled"
    )
    control(outcome)
    assert outcome.doubled > 0
