"""Rubbish in every call: odd values, damaged bytes, anything at all, while others work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from foldlog import AsyncClient, errors
from grpc import aio

from tests.faults.extent import Extent
from tests.faults.ground import Ground, grown
from tests.faults.harm import until_harm
from tests.faults.memory import MIB, resident_bytes
from tests.faults.oddities import Oddities
from tests.faults.outcome import Outcome
from tests.faults.rubbish import Thrower
from tests.faults.workers import Workers
from tests.served import Served

BACKENDS = ("sqlite-file", "postgres")
GROUNDS, THROWERS = 4, 3
# Caches may grow up to their settings: with small ones what else grows is seen.
CACHES = {"FOLDLOG_FOLD_CACHE_BYTES": str(8 * MIB), "FOLDLOG_BODY_CACHE_BYTES": str(8 * MIB)}
CODES = ("UNKNOWN", "INTERNAL")
MOST_GROWTH = 256 * MIB


async def damage(served: Served, grounds: list[Ground]) -> list[str]:
    """Return which of the sessions that rubbish fell on are no longer whole."""
    found = list[str]()
    async with AsyncClient(served.address) as client:
        for ground in grounds:
            session = client.session(ground.session_id)
            try:
                verified = await session.verify()
                found += [f"{ground.session_id}: {fault}" for fault in verified.faults]
                count = sum([1 async for _ in session.events()])
                if verified.next_seq < count:
                    found.append(f"{ground.session_id}: {count} events of {verified.next_seq}")
            except (errors.SessionNotFoundError, errors.SessionDeletedError):
                continue  # a call did that
            except errors.FoldlogError as error:
                found.append(f"{ground.session_id}: {error}")
    return found


async def storm(served: Served, extent: Extent, rounds: int) -> Outcome:
    """Throw rubbish at every RPC so often, and go on for the share of a soak."""
    grounds: list[Ground] = []
    kept: list[Ground] = []
    async with (
        aio.insecure_channel(served.address) as channel,
        Workers([served.address], extent.random, count=2, sessions=2) as workers,
    ):
        throwers = [
            Thrower(channel, Oddities(Random(extent.random.random()), grounds))
            for _ in range(THROWERS)
        ]
        before = 0
        for number in extent.rounds(short=rounds, long=rounds):
            named = f"{workers.labels['storm']}-ground-{number}"
            grounds.append(await asyncio.to_thread(grown, served.stub, named))
            del grounds[:-GROUNDS]
            kept = [*kept, grounds[-1]][-50:]
            await asyncio.gather(*(each.throw() for each in throwers))
            before = before or resident_bytes(served)
        await workers.answers(4)
        growth = resident_bytes(served) - before
    wrong = [each for thrower in throwers for each in thrower.answers.wrong]
    wrong += await damage(served, kept)
    if growth > MOST_GROWTH:
        wrong.append(f"the server grew by {growth} bytes")
    outcome = workers.history.outcome(
        f"rubbish in calls ({served.dialect})",
        await workers.audit(),
        injected=sum(thrower.answers.total for thrower in throwers),
        control="rubbish that does not decode is left to gRPC",
    )
    return replace(
        outcome,
        unsound=outcome.unsound + len(wrong),
        examples=(*wrong[:3], *outcome.examples),
        remark=f"{growth / MIB:.0f} MiB more memory",
    )


@pytest.mark.parametrize("backend", BACKENDS)
async def test_rubbish_in_calls_is_refused_and_hinders_nobody(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    report(await storm(serve(backend, **CACHES), extent, rounds=4))


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_a_server_that_trusts_what_it_is_sent_fails(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve(backend, "tests.faults.unsafe.trusting_decoder", **CACHES)
    outcome = await until_harm(lambda: storm(served, extent, rounds=2), "unsound", *CODES)
    control(outcome)
    assert any(code in each for each in outcome.examples for code in CODES), outcome
