"""The server is killed at random moments, under load from 16 writers."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.plans import APPENDS, EVERYTHING, Habits
from tests.faults.workers import Workers
from tests.served import Served

KILLS_PER_HISTORY = 10
LEAST = 5  # histories in any soak: with two stores and two programs, over 200 kills
CHECKPOINTING = "tests.faults.frequent_checkpoints"
BACKENDS = ("sqlite-file", "postgres")


async def kill(served: Served, workers: Workers, extent: Extent) -> float:
    """Kill the server somewhere among the answers; return how long it took to serve again."""
    await workers.answers(extent.random.randint(1, 80))
    await asyncio.sleep(extent.random.uniform(0, 0.03))
    served.kill9()
    began = time.monotonic()
    await asyncio.to_thread(served.start)
    return time.monotonic() - began


async def storm(
    served: Served,
    extent: Extent,
    kills: int,
    starts_s: list[float],
    habits: Habits = EVERYTHING,
) -> Outcome:
    """Kill the server so often among the same sessions, and audit them."""
    async with Workers([served.address], extent.random, habits=habits) as workers:
        for _ in range(kills):
            starts_s.append(await kill(served, workers, extent))
        await workers.answers(16)
    return workers.history.outcome(
        f"server killed ({served.dialect})",
        await workers.audit(),
        injected=kills,
        control="answers before the commit",
    )


@pytest.mark.parametrize("program", ["foldlog", CHECKPOINTING])
@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_a_killed_server_acknowledged_is_there_once_and_in_order(
    serve: Callable[..., Served],
    backend: str,
    program: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    served = serve(backend, program)
    starts_s: list[float] = []
    outcome = await storm(served, extent, 2, starts_s)
    for _ in extent.rounds(short=1, long=100 // KILLS_PER_HISTORY, least=LEAST):
        kills = 2 if extent.share_s is None else KILLS_PER_HISTORY
        outcome = outcome.plus(await storm(served, extent, kills, starts_s))
    started = f"served again after {statistics.median(starts_s):.1f} s, at most {max(starts_s):.1f}"
    report(replace(outcome, remark=started))


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_a_server_that_answers_before_the_commit_loses_writes(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve(backend, "tests.faults.unsafe.early_answers")
    outcome = await until_harm(lambda: storm(served, extent, 3, [], APPENDS), "lost")
    control(outcome)
    assert outcome.lost > 0
