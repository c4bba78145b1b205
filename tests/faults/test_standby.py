"""The database fails over: the primary dies, and its standby takes over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from foldlog.persistence.migrate import migrate

from tests.cluster import SETTINGS, Server, run
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.proxy import Proxy
from tests.faults.raging import ABANDONED, Fault, Serve, Take
from tests.postgres import another_server, program

FAILOVER = Fault("PostgreSQL fails over to its standby", "commits wait for the standby")
READY_S = 60.0
STREAMING = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
IMPATIENT = {"FOLDLOG_COMMIT_TIMEOUT_S": "2", "FOLDLOG_STATEMENT_TIMEOUT_S": "2"}


class Pair:
    """A primary, and a standby that follows it through a network that can stall."""

    def __init__(self, primary: Server, standby: Server, between: Proxy) -> None:
        self.primary, self.standby, self._between = primary, standby, between

    @property
    def url(self) -> str:
        """The URL of whichever of them is the primary."""
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in (self.primary, self.standby))
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    async def fail_over(self) -> None:
        """Lose the primary while the standby lags behind, and have it take over."""
        self._between.stall()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(self.primary.crash)
        self._between.cut()
        await asyncio.to_thread(self.standby.execute, "SELECT pg_promote()")


class Standby(Server):
    """A server that follows another."""

    def __init__(self, primary_port: int) -> None:
        self._primary_port = primary_port
        super().__init__(SETTINGS)

    def _initialise(self) -> None:
        program("pg_basebackup")
        place = ("-h", "127.0.0.1", "-p", str(self._primary_port), "-U", "postgres")
        how = ("-D", self.folder / "data", "-X", "stream", "-c", "fast", "-R", "--no-sync")
        done = run(self._programs / "pg_basebackup", *place, *how)
        if done.returncode != 0:
            raise RuntimeError(f"pg_basebackup failed: {done.stderr.decode()}")


@contextmanager
def pair(*, waits: bool) -> Iterator[Pair]:
    """Start a primary whose commits wait for its standby, or do not, and the standby."""
    with another_server() as primary, Proxy(primary.port) as between:
        migrate(primary.url())
        standby = Standby(between.port)
        try:
            _wait_until_followed(primary)
            names = "*" if waits else ""
            primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
            primary.execute("SELECT pg_reload_conf()")
            yield Pair(primary, standby, between)
        finally:
            standby.stop()


def _wait_until_followed(primary: Server) -> None:
    deadline = time.monotonic() + READY_S
    with psycopg.connect(primary.url(), autocommit=True) as connection:
        while connection.execute(STREAMING).fetchone() is None:
            if time.monotonic() > deadline:
                raise TimeoutError("the standby does not follow")
            time.sleep(0.02)


async def test_a_failover_loses_and_doubles_nothing(
    serve: Serve, extent: Extent, report: Take
) -> None:
    outcome: Outcome | None = None
    for _ in extent.rounds(short=1, long=20):
        with pair(waits=True) as both:
            served = serve("postgres", url=both.url, **IMPATIENT)
            found = await FAILOVER.rages(served, extent, both.fail_over, 1)
            served.close()
        outcome = outcome.plus(found) if outcome else found
    assert outcome is not None
    report(outcome)


async def test_control_a_standby_that_nobody_waits_for_loses_writes(
    serve: Serve, extent: Extent, control: Take
) -> None:
    async def storm() -> Outcome:
        with pair(waits=False) as both:
            served = serve("postgres", url=both.url, **IMPATIENT)
            lose = both.fail_over
            outcome = await FAILOVER.rages(served, extent, lose, 1, ABANDONED, restarts=True)
            served.close()
        return outcome

    outcome = await until_harm(storm, "lost")
    control(outcome)
    assert outcome.lost > 0
