"""Rubbish in stored rows: any column of some sessions' rows, while other sessions go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import grpc
import pytest
from foldlog.v1 import service_pb2
from grpc import aio

from tests.contract.calls import DEADLINE_S
from tests.faults.extent import Extent
from tests.faults.ground import Ground, grown
from tests.faults.harm import until_harm
from tests.faults.oddities import Oddities
from tests.faults.outcome import Outcome
from tests.faults.rubbish import OURS, Answers, Thrower
from tests.faults.spoiling import Spoiler
from tests.faults.workers import Workers
from tests.integrity.attacker import Attacker
from tests.served import Served

STORES = ("sqlite-file", "postgres", "sqlite-file-encrypted")
SPOILT = 6
GENTLE = (0.0, 0.0, 0.0, 0.02)
# Damage is what there is; a service that hides it as a fault of its own, or hangs, is at fault.
FAULTS = OURS - {grpc.StatusCode.DATA_LOSS}
FREQUENT_CHECKPOINTS = "tests.faults.frequent_checkpoints"
TRUSTING = "tests.faults.unsafe.trusting_rows"


async def grow(served: Served, named: str) -> list[Ground]:
    """Make sessions to spoil, and wait until they are listed."""
    grounds = [await asyncio.to_thread(grown, served.stub, f"{named}-{n}") for n in range(2)]
    await asyncio.to_thread(list_none, served)
    return grounds


def list_none(served: Served) -> None:
    """List no session, which waits until the index has all that were written."""
    request = service_pb2.ListSessionsRequest(labels={"is": "nowhere"})
    assert not served.stub.ListSessions(request, timeout=DEADLINE_S).sessions


async def thrown(served: Served, oddities: Oddities) -> Answers:
    """Call every RPC on what is spoilt."""
    async with aio.insecure_channel(served.address) as channel:
        await channel.channel_ready()
        thrower = Thrower(channel, oddities, FAULTS)
        await thrower.throw()
    return thrower.answers


async def storm(served: Served, extent: Extent, rounds: int, values: int = SPOILT) -> Outcome:
    """Spoil sessions so often, and go on for the share of a soak; each time by caches and anew."""
    wrong, spoilt, codes = list[str](), 0, Counter[str]()
    attacker = Attacker(served.database_url)
    async with Workers([served.address], extent.random, count=2, sessions=2) as workers:
        for number in extent.rounds(short=rounds, long=rounds):
            grounds = await grow(served, f"{workers.labels['storm']}-ground-{number}")
            oddities = Oddities(Random(extent.random.random()), grounds, GENTLE)
            spoiler = Spoiler(attacker, oddities)
            done = await asyncio.to_thread(spoiler.spoil, grounds, values)
            answers = [await thrown(served, oddities)]
            await asyncio.to_thread(served.restart)
            answers.append(await thrown(served, oddities))
            spoilt += len(done)
            for each in answers:
                codes += each.codes
                wrong += [f"{said} after {done}" for said in each.wrong]
        await workers.answers(4)
    outcome = workers.history.outcome(
        f"rubbish in stored rows ({served.dialect})",
        await workers.audit(),
        injected=spoilt,
        control="rows are taken for what they are to be",
    )
    return replace(
        outcome,
        unsound=outcome.unsound + len(wrong),
        examples=(*wrong[:3], *outcome.examples),
        remark=f"{codes['DATA_LOSS']:,} of {codes.total():,} calls told of damage",
    )


@pytest.mark.parametrize("store", STORES)
async def test_rubbish_in_rows_is_told_as_damage_and_hinders_no_other_session(
    serve: Callable[..., Served], store: str, extent: Extent, report: Callable[[Outcome], None]
) -> None:
    report(await storm(serve(store, FREQUENT_CHECKPOINTS), extent, rounds=2))


@pytest.mark.parametrize("store", STORES)
async def test_control_a_server_that_trusts_its_rows_fails(
    serve: Callable[..., Served], store: str, extent: Extent, control: Callable[[Outcome], None]
) -> None:
    served = serve(store, TRUSTING)
    outcome = await until_harm(
        lambda: storm(served, extent, rounds=1, values=4 * SPOILT), "unsound", "INTERNAL"
    )
    control(outcome)
    assert any("INTERNAL" in each for each in outcome.examples), outcome
