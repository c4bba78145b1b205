"""Workers die at any point of a call: whoever comes next gets the definitive answer."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from foldlog import AsyncClient

from tests.faults import dying_worker
from tests.faults.attempts import RETRY, answered
from tests.faults.auditing import audit
from tests.faults.counts import METRICS, open_watches
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.histories import Append, Findings, Fork, Operation
from tests.faults.outcome import Outcome
from tests.faults.waiting import until
from tests.faults.workers import History
from tests.served import Served

BACKENDS = ("sqlite-file", "postgres")
FORGETFUL = "tests.faults.unsafe.forgotten_requests"
AT_ONCE = 4


@dataclass
class Doomed:
    """A worker's process, and what it wrote so far."""

    process: Process
    output: bytes = b""

    @classmethod
    async def start(cls, served: Served, session_id: str, storm: str) -> Doomed:
        """Start a worker on a session."""
        command = (sys.executable, dying_worker.__file__, served.address, session_id, storm)
        process = await asyncio.create_subprocess_exec(
            *command, session_id, stdout=PIPE, env=served.process_environment()
        )
        return cls(process)

    async def die(self, after_bytes: int, delay_s: float) -> None:
        """Let it work until it wrote so much, then kill it."""
        assert self.process.stdout is not None
        while len(self.output) < after_bytes:
            written = await self.process.stdout.read(65_536)
            assert written, "the worker ended by itself"
            self.output += written
        await asyncio.sleep(delay_s)
        self.process.kill()
        self.output += await self.process.stdout.read()
        await self.process.wait()


def _moment(extent: Extent) -> tuple[int, float]:
    return extent.random.randint(1, 20_000), extent.random.uniform(0, 0.01)


async def storm(served: Served, extent: Extent) -> Outcome:
    """Kill workers on sessions of their own, and let a successor find out what they did."""
    name = f"{extent.random.getrandbits(48):012x}"
    labels = {"storm": name}
    history = History(session_ids=[f"{name}-{n}" for n in range(AT_ONCE)])
    async with AsyncClient(served.address, retry=RETRY) as client:
        for session_id in history.session_ids:
            await client.create(session_id, labels=labels)
        doomed = [await Doomed.start(served, each, name) for each in history.session_ids]
        await until(lambda: open_watches(served) == AT_ONCE)
        await asyncio.gather(*(each.die(*_moment(extent)) for each in doomed))
        await until(lambda: open_watches(served) == 0)
        succession = Succession(client, history)
        for each in doomed:
            await succession.succeed(dying_worker.told(each.output))
        succession.findings.add(await audit(client, history.by_session(), labels))
    outcome = history.outcome(
        f"worker killed in a call ({served.dialect})",
        succession.findings,
        injected=AT_ONCE,
        control="request ids are not known again",
    )
    return replace(outcome, unavailable_s=succession.longest_wait_s)


@dataclass
class Succession:
    """Asks again for what killed workers were not answered."""

    client: AsyncClient
    history: History
    findings: Findings = field(default_factory=Findings)
    longest_wait_s: float = 0.0

    async def succeed(self, operations: list[Operation]) -> None:
        """Ask again, then write: nothing that the dead left behind is to hinder it."""
        session_id = operations[0].session_id
        last = Append((f"{session_id} lives",))
        operations.append(Operation(session_id, "last", last, time.monotonic_ns()))
        for operation in operations:
            if operation.answer is None:
                await self._ask_twice(operation)
            if isinstance(operation.asked, Fork) and operation.is_acknowledged:
                self.history.session_ids.append(operation.asked.child_id)
        self.history.operations += operations

    async def _ask_twice(self, operation: Operation) -> None:
        session = self.client.session(operation.session_id)
        asked_ns = time.monotonic_ns()
        operation.answer = await answered(session, operation.asked, operation.request_id)
        operation.returned_ns = time.monotonic_ns()
        self.longest_wait_s = max(self.longest_wait_s, (operation.returned_ns - asked_ns) / 1e9)
        again = await answered(session, operation.asked, operation.request_id)
        if operation.is_acknowledged and again != operation.answer:
            self.findings.doubled.append(f"{operation} and then {again}")


@pytest.mark.parametrize("backend", BACKENDS)
async def test_the_successor_of_a_killed_worker_learns_what_it_did(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    served = serve(backend, **METRICS)
    outcome = await storm(served, extent)
    for _ in extent.rounds(short=1, long=20):
        outcome = outcome.plus(await storm(served, extent))
    report(outcome)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_without_request_ids_the_successor_does_it_again(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve(backend, FORGETFUL, **METRICS)
    outcome = await until_harm(lambda: storm(served, extent), "doubled")
    control(outcome)
    assert outcome.doubled > 0
