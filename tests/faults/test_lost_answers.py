"""Deadlines pass during the commit, calls are cancelled, answers are lost on the way.

Whoever asks again under the same request id learns what became of the call. Nothing is left
behind: no watch, no lane that waits.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import psycopg
import pytest
from foldlog import AsyncClient, errors, user

from tests.client.proxy import Proxy
from tests.faults.attempts import RETRY
from tests.faults.counts import METRICS, open_watches
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.plans import Habits
from tests.faults.waiting import until
from tests.faults.workers import History, Workers
from tests.postgres import owner_url
from tests.served import Served

BACKENDS: Final = ("sqlite-file", "postgres")
FORGETFUL: Final = "tests.faults.unsafe.forgotten_requests"
CONTROL: Final = "request ids are not known again"
IMPATIENT: Final = Habits(abandoned=2, hurried=25, cancelled=25)
RETRYING: Final = Habits(abandoned=0)
WATCHERS: Final = 8
LEFT_WRITE_S: Final = 20.0


async def storm_of_deadlines(served: Served, extent: Extent, operations: int) -> Outcome:
    """Let half of all attempts have too little time, or be cancelled, and watchers come and go."""
    async with Workers([served.address], extent.random, habits=IMPATIENT) as workers:
        watching = [asyncio.create_task(come_and_go(served, workers)) for _ in range(WATCHERS)]
        await until(partial(is_watched, served))
        await workers.answers(operations)
        for each in watching:
            each.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    await until(lambda: open_watches(served) == 0)
    findings = await workers.audit()
    await write_to_each(served, workers.history)
    outcome = workers.history.outcome(
        f"deadline passed or call cancelled ({served.dialect})",
        findings,
        injected=workers.history.unknown_fates,
        control=CONTROL,
    )
    return outcome


def is_watched(served: Served) -> bool:
    """Whether somebody watches: else that nobody does in the end would say nothing."""
    return open_watches(served) > 0


async def come_and_go(served: Served, workers: Workers) -> None:
    """Open watches, and leave each in the middle."""
    async with AsyncClient(served.address, retry=RETRY) as client:
        while True:
            session_id = workers.history.session_ids[-1]
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05), client.session(session_id).watch() as watch:
                    async for _ in watch:
                        pass


async def write_to_each(served: Served, history: History) -> None:
    """Write to every session: a lane that waited for something would not let it."""
    async with AsyncClient(served.address, timeout_s=LEFT_WRITE_S, retry=RETRY) as client:
        for session_id in history.session_ids:
            await client.session(session_id).append(user("after all"))


async def storm_of_cuts(served: Served, extent: Extent, cuts: int) -> Outcome:
    """Cut connections where an answer is on its way."""
    with Proxy(served.address) as proxy:
        async with Workers([proxy.address], extent.random, habits=RETRYING) as workers:
            for _ in range(cuts):
                await workers.answers(extent.random.randint(1, 60))
                proxy.mute()
                await until(proxy.muted.is_set)
                proxy.unmute()
            await workers.answers(16)
        findings = await workers.audit(served.address)
    outcome = workers.history.outcome(
        f"answer lost ({served.dialect})", findings, injected=cuts, control=CONTROL
    )
    told = f"{workers.history.unknown_fates:,} calls asked again"
    return replace(outcome, remark=told) if workers.history.unknown_fates else outcome


STORMS: Final = {"deadlines": (storm_of_deadlines, 300), "cuts": (storm_of_cuts, 10)}


@pytest.mark.parametrize("kind", STORMS)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_who_asks_again_learns_what_became_of_the_call(
    serve: Callable[..., Served],
    backend: str,
    kind: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    storm, size = STORMS[kind]
    served = serve(backend, **METRICS)
    outcome = await storm(served, extent, size)
    for _ in extent.rounds(short=0, long=10):
        outcome = outcome.plus(await storm(served, extent, size * 3))
    report(outcome)


@pytest.mark.parametrize("kind", STORMS)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_without_request_ids_who_asks_again_does_it_again(
    serve: Callable[..., Served],
    backend: str,
    kind: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    storm, size = STORMS[kind]
    served = serve(backend, FORGETFUL, **METRICS)
    outcome = await until_harm(lambda: storm(served, extent, size), "doubled")
    control(outcome)
    assert outcome.doubled > 0


@contextmanager
def no_commits(served: Served) -> Iterator[None]:
    """Keep every commit waiting until the end of the block."""
    connection: Any
    if served.dialect == "sqlite":
        connection = sqlite3.connect(served.database_url.removeprefix("sqlite:///"))
        connection.execute("BEGIN IMMEDIATE")
    else:
        connection = psycopg.connect(owner_url(served.database_url))
        connection.execute("LOCK TABLE foldlog_events IN SHARE MODE")
    with closing(connection):
        yield
        connection.rollback()


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_write_whose_deadline_passes_while_it_is_committed_is_made_once(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend)
    async with AsyncClient(served.address, retry=RETRY) as client:
        session = await client.create()
        await session.append(user("first"))
        with no_commits(served):
            with pytest.raises(errors.DeadlineExceededError):
                await session.append(user("a"), user("b"), request_id="r", timeout_s=0.5)
            asking = asyncio.create_task(session.append(user("a"), user("b"), request_id="r"))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(asking), 0.5)
        answer = await asking
        assert (answer.first_seq, answer.next_seq) == (1, 3)
        assert await session.append(user("a"), user("b"), request_id="r") == answer
        assert (await session.append(user("after"))).first_seq == 3
