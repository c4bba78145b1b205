"""A million tiny calls, most of them rubbish: they are answered, and no memory is kept for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final

from grpc import aio

from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.memory import MIB, resident_bytes
from tests.faults.outcome import Outcome
from tests.faults.rubbish import METHODS, OURS, SERVICE
from tests.faults.workers import Workers
from tests.served import Served

CACHES: Final = {"FOLDLOG_FOLD_CACHE_BYTES": str(MIB), "FOLDLOG_BODY_CACHE_BYTES": str(MIB)}
PATHS: Final = [
    f"/{SERVICE.full_name}/{each.name}"
    for each in METHODS
    if not each.client_streaming and not each.server_streaming
]
AT_ONCE: Final = 20
ROUND: Final = 1_000
MOST_GROWTH: Final = 64 * MIB


async def throw(channel: aio.Channel, seed: float) -> int:
    """Make tiny calls; return how many were answered."""
    random, answered = Random(seed), 0
    for _ in range(ROUND // AT_ONCE):
        path = random.choice([*PATHS, f"/{SERVICE.full_name}/Nothing{random.random()}"])
        call: Any = channel.unary_unary(path)
        try:
            await call(random.randbytes(random.choice((0, 1, 2, 4))), timeout=120)
        except aio.AioRpcError as error:
            answered += error.code() not in OURS
        else:
            answered += 1
    return answered


async def storm(served: Served, extent: Extent, rounds: int) -> Outcome:
    """Make a thousand calls so often, on a new connection each time; a soak makes a million."""
    wrong, answered, made, before = list[str](), 0, 0, 0
    async with Workers([served.address], extent.random, count=1, sessions=1) as workers:
        for number in extent.rounds(short=rounds, long=1_000):
            async with aio.insecure_channel(served.address) as channel:
                seeds = [extent.random.random() for _ in range(AT_ONCE)]
                answered += sum(await asyncio.gather(*(throw(channel, each) for each in seeds)))
            made += ROUND
            if number == 1:  # what the first of its kind leaves is there by now
                before = resident_bytes(served)
        await workers.answers(4)
        growth = resident_bytes(served) - before
    if answered < made:
        wrong.append(f"{made - answered} of {made} calls were not answered as they are to be")
    if growth > MOST_GROWTH:
        wrong.append(f"the server grew by {growth / MIB:.0f} MiB")
    outcome = workers.history.outcome(
        "very many tiny calls", await workers.audit(), injected=made, control="calls are kept"
    )
    return replace(
        outcome,
        unsound=outcome.unsound + len(wrong),
        examples=(*wrong, *outcome.examples),
        remark=f"{growth / MIB:.0f} MiB more memory",
    )


async def test_no_memory_is_kept_for_tiny_calls(
    serve: Callable[..., Served], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    report(await storm(serve("sqlite-file", **CACHES), extent, rounds=6))


async def test_control_a_server_that_keeps_calls_grows(
    serve: Callable[..., Served], extent: Extent, control: Callable[[Outcome], None]
) -> None:
    served = serve("sqlite-file", "tests.faults.unsafe.hoarded_calls", **CACHES)
    outcome = await until_harm(lambda: storm(served, extent, rounds=5), "unsound", "grew")
    control(outcome)
    assert any("grew" in each for each in outcome.examples), outcome
