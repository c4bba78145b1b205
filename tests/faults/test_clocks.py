"""Clocks set back and forward by hours change no order and hide nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from foldlog import AsyncClient, SessionInfo, user

from tests.faults.attempts import RETRY
from tests.faults.clocks import Clock
from tests.faults.extent import Extent
from tests.faults.followers import Follower
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.workers import Workers
from tests.served import Served

BACKENDS: Final = ("sqlite-file", "postgres")
BY_TIME: Final = "tests.faults.unsafe.events_by_time"
PAGE: Final = 3
LONG_LOG: Final = 2_200  # past two checkpoints
Servers = tuple[list[Served], list[Clock]]


@pytest.fixture
def clocked(
    serve: Callable[..., Served], pair: Callable[..., list[Served]], tmp_path: Path
) -> Callable[..., Servers]:
    """Start one server on SQLite, or two on one PostgreSQL, each with a clock of its own."""

    def start(backend: str, program: str = "foldlog", **settings: str) -> Servers:
        clocks = [Clock(tmp_path / name) for name in ("clock-one", "clock-two")]
        if backend == "sqlite-file":
            return [serve(backend, program, **clocks[0].environment, **settings)], clocks[:1]
        return pair(program, [clock.environment | settings for clock in clocks]), clocks

    return start


async def storm(servers: list[Served], clocks: list[Clock], extent: Extent, jumps: int) -> Outcome:
    """Set clocks while workers write; kill a server now and then, so that one starts then, too."""
    addresses = [served.address for served in servers]
    async with Follower(addresses[-1]) as follower:
        async with Workers(addresses, extent.random) as workers:
            for _ in range(jumps):
                extent.random.choice(clocks).jump(extent.random)
                await workers.answers(extent.random.randint(10, 60))
                if extent.random.random() < 0.1:
                    await asyncio.to_thread(extent.random.choice(servers).restart)
        findings = await workers.audit(addresses[0])
        async with AsyncClient(addresses[-1], retry=RETRY) as client:
            listed = [each async for each in client.list(labels=workers.labels)]
            findings.lost += await listing_complaints(client, listed, workers.labels)
        findings.lost += await follower.complaints(own_logs(listed))
    return workers.history.outcome(
        f"clock set by hours ({servers[0].dialect})",
        findings,
        injected=jumps,
        control="events are told in the order of their times",
    )


def own_logs(listed: list[SessionInfo]) -> dict[str, range]:
    """Return the seqs that each session wrote itself."""
    firsts = {each.session_id: each.parent.at_seq + 1 if each.parent else 0 for each in listed}
    return {each.session_id: range(firsts[each.session_id], each.next_seq) for each in listed}


async def listing_complaints(
    client: AsyncClient, whole: list[SessionInfo], labels: dict[str, str]
) -> list[str]:
    """Hold short pages, and pages from a time on, to the whole list."""
    paged = [each.session_id async for each in client.list(labels=labels, page_size=PAGE)]
    complaints = []
    if sorted(paged) != sorted(each.session_id for each in whole):
        complaints.append(f"short pages list {paged}")
    pivot = sorted(each.create_time_ns for each in whole)[len(whole) // 2]
    for since, until in ((pivot, None), (None, pivot)):
        wanted = {s.session_id for s in whole if (s.create_time_ns >= pivot) == (since is not None)}
        found = client.list(labels=labels, created_from=since, created_before=until, page_size=PAGE)
        if (listed := {each.session_id async for each in found}) != wanted:
            complaints.append(f"from {since} before {until}: {listed}, not {wanted}")
    return complaints


@pytest.mark.parametrize("backend", BACKENDS)
async def test_clocks_that_are_set_change_no_order_and_hide_nothing(
    clocked: Callable[..., Servers],
    backend: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    servers, clocks = clocked(backend)
    outcome = await storm(servers, clocks, extent, 8)
    for _ in extent.rounds(short=0, long=10):
        outcome = outcome.plus(await storm(servers, clocks, extent, 20))
    report(outcome)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_events_in_the_order_of_their_times_are_in_disorder(
    clocked: Callable[..., Servers],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    servers, clocks = clocked(backend, BY_TIME)
    outcome = await until_harm(lambda: storm(servers, clocks, extent, 6), "reordered")
    control(outcome)
    assert outcome.reordered > 0


@pytest.mark.parametrize("backend", BACKENDS)
async def test_an_old_request_is_known_again_whatever_the_clock_says(
    clocked: Callable[..., Servers], backend: str
) -> None:
    servers, clocks = clocked(backend)
    async with AsyncClient(servers[0].address, retry=RETRY) as client:
        session = await client.create()
        first = await session.append(user("once"), request_id="r")
        for hours in (-9, 30 * 24):
            clocks[0].set(hours)
            servers[0].restart()
            assert await session.append(user("once"), request_id="r") == first
        assert (await session.info()).next_seq == 1


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_log_with_checkpoints_from_odd_times_opens_whole(
    clocked: Callable[..., Servers], backend: str
) -> None:
    servers, clocks = clocked(backend)
    async with AsyncClient(servers[0].address, retry=RETRY) as client:
        session = await client.create()
        for start in range(0, LONG_LOG, 200):
            clocks[0].set(12 - start / 100)  # each batch two hours before the one before it
            await session.append(*(user(str(n)) for n in range(start, start + 200)))
        servers[0].restart()
        told = [each.message.content for each in await session.messages()]
        assert told == [str(n) for n in range(LONG_LOG)]
        assert (await session.verify()).intact


@pytest.mark.parametrize("backend", BACKENDS)
async def test_an_attachment_outlives_a_clock_that_is_set_by_less_than_the_grace(
    clocked: Callable[..., Servers], backend: str
) -> None:
    servers, clocks = clocked(backend)
    async with AsyncClient(servers[0].address, retry=RETRY) as client:
        session = await client.create()
        for size in (100, 600_000):  # in the database, and in a file
            stored = await client.put_attachment(bytes(size))
            for hours in (-12, 12, 0):
                for clock in clocks:
                    clock.set(hours)
                assert (await client.collect_attachments()).collected_count == 0
            await session.append(user([stored.part("application/octet-stream")]))
            assert await client.read_attachment(stored.sha256) == bytes(size)
