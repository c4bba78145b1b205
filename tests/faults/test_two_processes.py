"""Two service processes on one PostgreSQL, either of which is killed now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.workers import Workers
from tests.served import Served

FAULT = "one of two servers on one PostgreSQL killed"
OPERATIONS_PER_KILL = 150
KILLS_PER_HISTORY = 8


async def storm(servers: list[Served], extent: Extent, kills: int) -> Outcome:
    """Let workers operate on the same sessions through both servers, and kill one so often."""
    addresses = [served.address for served in servers]
    async with Workers(addresses, extent.random) as workers:
        for _ in range(kills):
            await workers.answers(extent.random.randint(1, OPERATIONS_PER_KILL))
            await asyncio.to_thread(extent.random.choice(servers).restart)
        await workers.answers(OPERATIONS_PER_KILL)
    return workers.history.outcome(
        FAULT,
        await workers.audit(extent.random.choice(addresses)),
        injected=kills,
        control="no look at what the other wrote",
    )


async def test_what_two_servers_write_to_the_same_sessions_is_one_history(
    pair: Callable[..., list[Served]], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    servers = pair()
    outcome = await storm(servers, extent, 2)
    wanted = extent.cycles(short=0, long=100_000)
    rounds = extent.rounds(short=0, long=1)
    while next(rounds, None) is not None or outcome.operations < wanted:
        outcome = outcome.plus(await storm(servers, extent, KILLS_PER_HISTORY))
    report(outcome)


async def test_control_servers_that_do_not_look_at_the_store_tell_what_is_past(
    pair: Callable[..., list[Served]], extent: Extent, control: Callable[[Outcome], None]
) -> None:
    servers = pair("tests.faults.unsafe.unconfirmed_heads")
    outcome = await until_harm(lambda: storm(servers, extent, 1), "reordered")
    control(outcome)
    assert outcome.reordered > 0
