"""Watches: over killed servers, without hints, a thousand idle ones, and readers that vanish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import foldlog
import grpc
import psycopg
import pytest
from foldlog import AsyncClient, errors
from foldlog.v1 import service_pb2, service_pb2_grpc

from tests.contract.calls import Calls
from tests.contract.said import user
from tests.faults.attempts import RETRY
from tests.faults.counts import METRICS, open_watches
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.proxy import Proxy
from tests.faults.test_killed_servers import kill
from tests.faults.waiting import until
from tests.faults.workers import Workers
from tests.served import Served

DEADLINE_S = 120.0
IDLE = 1_000
CHANNELS = 10


class Watcher:
    """Follows a session through the client, and keeps the seqs that it was told."""

    def __init__(self, address: str, session_id: str, *, forgets: bool = False) -> None:
        self.session_id = session_id
        self.seqs: list[int] = []
        self._address = address
        self._forgets = forgets
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async with AsyncClient(self._address, retry=RETRY) as client:
            session = client.session(self.session_id)
            if self._forgets:
                await self._from_the_present(session)
            async for item in session.watch():
                if isinstance(item, foldlog.Event):
                    self.seqs.append(item.seq)

    async def _from_the_present(self, session: foldlog.AsyncSession) -> None:
        """Watch again from where the session is, not from where the watch was: the control."""
        while True:
            try:
                await session.messages()
                async for item in session.watch(session.next_seq or 0, max_outage_s=0.0):
                    if isinstance(item, foldlog.Event):
                        self.seqs.append(item.seq)
            except errors.FoldlogError:
                await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Stop following. Raises what ended it."""
        if not self._task.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task


async def storm(served: Served, extent: Extent, kills: int, *, forgets: bool = False) -> Outcome:
    """Kill the server so often while sessions are written and watched; hold watches to logs."""
    async with Workers([served.address], extent.random, count=6, sessions=3) as workers:
        await workers.answers(6)
        watched = list(workers.history.session_ids)
        watchers = [Watcher(served.address, each, forgets=forgets) for each in watched]
        for _ in range(kills):
            await kill(served, workers, extent)
        await workers.answers(16)
    findings = await workers.audit()
    async with AsyncClient(served.address) as client:
        logs = [[e.seq async for e in client.session(each).events()] for each in watched]
    if not forgets:
        pairs = list(zip(watchers, logs, strict=True))
        await until(lambda: all(len(each.seqs) >= len(log) for each, log in pairs))
    for watcher, log in zip(watchers, logs, strict=True):
        await watcher.close()
        told = watcher.seqs
        findings.lost += [f"{seq} was not told" for seq in sorted(set(log) - set(told))]
        if len(told) > len(set(told)):
            findings.doubled.append(f"{len(told) - len(set(told))} were told twice")
        if told != sorted(told):
            findings.reordered.append(f"told in the order {told}")
    return workers.history.outcome(
        f"server killed under watches ({served.database_url.partition(':')[0]})",
        findings,
        injected=kills,
        control="watches again from the present",
    )


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
async def test_a_watch_has_no_gap_and_no_duplicate_over_killed_servers(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    served = serve(backend)
    outcome = await storm(served, extent, 2)
    for _ in extent.rounds(short=0, long=20):
        outcome = outcome.plus(await storm(served, extent, 5))
    report(outcome)


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
async def test_control_watching_again_from_the_present_has_gaps(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve(backend)
    outcome = await until_harm(lambda: storm(served, extent, 1, forgets=True), "lost")
    control(outcome)
    assert outcome.lost > 0


@pytest.fixture
async def deaf(serve: Callable[..., Served], tmp_path: Path) -> AsyncIterator[Any]:
    """Two servers on one database: one that writes, and one that hears no hint of it."""
    writer = serve("postgres")
    started: list[Served] = []

    def start(poll_s: str) -> tuple[Served, Served]:
        settings = {"FOLDLOG_FEED_POLL_S": poll_s}
        listener = Served(writer.database_url, tmp_path, settings, "tests.faults.unsafe.deaf")
        started.append(listener)
        return writer, listener.start()

    yield start
    for each in started:
        each.close()


def told_elsewhere(writer: Served, listener: Served, timeout_s: float) -> list[str]:
    """Write at one server; return what a watch at the other one tells of it."""
    log = Calls.create(writer.stub)
    answers = Calls(listener.stub, log.session_id).watch(timeout_s=timeout_s)
    assert next(answers).HasField("caught_up")
    log.append(user("a"), user("b"))
    texts: list[str] = []
    with suppress(grpc.RpcError):  # the time is over
        while len(texts) < 2:
            texts.append(next(answers).event.body.message.text)
    answers.cancel()
    return texts


async def test_what_no_hint_told_is_found_by_the_next_look(deaf: Any) -> None:
    writer, listener = deaf("0.1")
    assert told_elsewhere(writer, listener, DEADLINE_S) == ["a", "b"]


async def test_control_without_looking_a_lost_hint_is_never_made_up_for(deaf: Any) -> None:
    writer, listener = deaf("3600")
    assert told_elsewhere(writer, listener, 5.0) == []


def threads_of(served: Served) -> int:
    """Return how many threads a server has."""
    return len(list(Path(f"/proc/{served.process.pid}/task").iterdir()))


def connections_to(served: Served) -> int:
    """Return how many connections its database has, but for this one."""
    counting = "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
    with psycopg.connect(served.database_url) as connection:
        row = connection.execute(counting).fetchone()
    return int(row[0]) if row else 0


async def caught_up(stub: Any, session_id: str) -> Any:
    """Open a watch and return it once it has told everything."""
    request = service_pb2.WatchEventsRequest(session_id=session_id)
    answers = stub.WatchEvents(request, timeout=DEADLINE_S)
    while not (await answers.read()).HasField("caught_up"):
        pass
    return answers


async def test_a_thousand_idle_watches_take_no_connection_and_no_thread(
    serve: Callable[..., Served],
) -> None:
    served = serve("postgres", FOLDLOG_POOL_SIZE="4", **METRICS)
    logs = [Calls.create(served.stub) for _ in range(10)]
    for log in logs:
        log.append(user("a"))
        log.fold()
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(served.address, [("i", n)]))
            for n in range(CHANNELS)
        ]
        stubs = [service_pb2_grpc.SessionServiceStub(channel) for channel in channels]
        some = [await caught_up(stubs[0], log.session_id) for log in logs]
        threads = threads_of(served)
        waiting = [
            asyncio.create_task(caught_up(stubs[n % CHANNELS], logs[n % 10].session_id))
            for n in range(IDLE - len(some))
        ]
        watches = some + await asyncio.gather(*waiting)
        assert open_watches(served) == IDLE
        assert threads_of(served) <= threads + 4
        assert connections_to(served) <= 4 + 2
        logs[0].append(user("b"))
        told = [await each.read() for each in (watches[0], watches[10], watches[-10])]
        assert [each.event.seq for each in told] == [1, 1, 1]
    await until(lambda: open_watches(served) == 0)


async def test_a_watch_whose_reader_vanished_without_a_word_ends(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-file", FOLDLOG_KEEPALIVE_S="0.3", **METRICS)
    log = Calls.create(served.stub)
    with Proxy(int(served.address.rpartition(":")[2])) as network:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{network.port}") as channel:
            stub = service_pb2_grpc.SessionServiceStub(channel)
            await caught_up(stub, log.session_id)
            assert open_watches(served) == 1
            network.stall()
            await until(lambda: open_watches(served) == 0)
