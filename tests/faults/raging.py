"""A storm: workers at work while one fault is injected again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tests.faults.extent import Extent
from tests.faults.outcome import Outcome
from tests.faults.plans import APPENDS, EVERYTHING, Habits
from tests.faults.workers import Workers
from tests.served import Served

Inject = Callable[[], Awaitable[None]]
Serve = Callable[..., Served]
Take = Callable[[Outcome], None]
HOPEFUL = "tests.faults.unsafe.hopeful_commits"
FORGETFUL = "tests.faults.unsafe.forgotten_requests"
ABANDONED = replace(APPENDS, abandoned=80)
CALM = 16


@dataclass(frozen=True, slots=True)
class Fault:
    """What is injected, and which safeguard the control is without."""

    name: str
    safeguard: str

    async def rages(
        self,
        served: Served,
        extent: Extent,
        inject: Inject,
        times: int = 3,
        habits: Habits = EVERYTHING,
        *,
        restarts: bool = False,
    ) -> Outcome:
        """Inject it so often at random moments among the answers, and audit what was written.

        `inject` returns when the fault is over; then the workers have to be served again. A server
        that restarts before the audit has forgotten what the database lost.
        """
        async with Workers([served.address], extent.random, habits=habits) as workers:
            for _ in range(times):
                await workers.answers(extent.random.randint(1, 80))
                await inject()
            await workers.answers(CALM)
        if restarts:
            await asyncio.to_thread(served.restart)
        findings = await workers.audit()
        history = workers.history
        return history.outcome(self.name, findings, injected=times, control=self.safeguard)

    async def storms(
        self,
        served: Served,
        extent: Extent,
        inject: Inject,
        *,
        short: int = 3,
        long: int = 100,
    ) -> Outcome:
        """Rage once; in a soak as often as its share of time allows, each time on new sessions."""
        outcome = await self.rages(served, extent, inject, short)
        if extent.share_s is not None:
            for _ in extent.rounds(short=1, long=long // short):
                outcome = outcome.plus(await self.rages(served, extent, inject, short))
        return outcome
