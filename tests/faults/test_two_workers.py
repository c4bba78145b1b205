"""Two workers on one session: one wins a race, and one that was replaced is out for good."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from foldlog import AsyncClient, AsyncSession, errors, user

from tests.faults.attempts import RETRY, answered
from tests.faults.auditing import audit
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.histories import Append, Operation, Refused, Wrote
from tests.faults.outcome import Outcome
from tests.faults.waiting import until
from tests.faults.workers import History
from tests.served import Served

BACKENDS = ("sqlite-file", "postgres")
UNHEEDED = "tests.faults.unsafe.unheeded_"
RACES_PER_SESSION = 100
TAKEOVERS_PER_SESSION = 40
WRITES_PER_EPOCH = 10


@asynccontextmanager
async def two_clients(served: Served) -> AsyncIterator[tuple[AsyncClient, AsyncClient]]:
    """Lend two clients with a connection each."""
    async with (
        AsyncClient(served.address, retry=RETRY) as one,
        AsyncClient(served.address, retry=RETRY) as other,
    ):
        yield one, other


async def race(served: Served, extent: Extent, races: int) -> Outcome:
    """Let two workers append at the same next_seq, again and again."""
    history = History(session_ids=[f"race-{extent.random.getrandbits(48):012x}"])
    (session_id,) = history.session_ids
    labels = {"storm": session_id}
    async with two_clients(served) as clients:
        await clients[0].create(session_id, labels=labels)
        next_seq = 0
        ties = 0
        for number in range(races):
            runs = [
                run(history, client.session(session_id), next_seq, f"{session_id}-{number}-{n}")
                for n, client in enumerate(clients)
            ]
            extent.random.shuffle(runs)
            won = [each for each in await asyncio.gather(*runs) if each.is_acknowledged]
            ties += len(won) != 1
            next_seq = (await clients[0].get(session_id)).next_seq
        findings = await audit(clients[0], history.by_session(), labels)
    findings.reordered += ["a race without exactly one winner"] * ties
    control = "expected_next_seq is not compared"
    return history.outcome(
        f"two workers, one next_seq ({served.dialect})", findings, injected=races, control=control
    )


async def run(history: History, session: AsyncSession, next_seq: int, name: str) -> Operation:
    """Append two events at a next_seq."""
    asked = Append((f"{name}.0", f"{name}.1"), expected_next_seq=next_seq)
    operation = Operation(session.session_id, name, asked, time.monotonic_ns())
    history.operations.append(operation)
    operation.answer = await answered(session, asked, name)
    operation.returned_ns = time.monotonic_ns()
    return operation


@pytest.mark.parametrize("backend", BACKENDS)
async def test_of_two_who_expect_the_same_next_seq_exactly_one_wins(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    served = serve(backend)
    outcome = await race(served, extent, 20)
    for _ in extent.rounds(short=0, long=10):
        outcome = outcome.plus(await race(served, extent, RACES_PER_SESSION))
    report(outcome)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_without_the_comparison_both_win(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve(backend, f"{UNHEEDED}expectations")
    outcome = await until_harm(lambda: race(served, extent, 20), "reordered")
    control(outcome)
    assert outcome.reordered > 0


@dataclass
class Succession:
    """A session whose writers replace one another while they write.

    `begun_at` is the next_seq at which each epoch began, `ended_ns` when its end was known.
    """

    session_id: str
    history: History = field(default_factory=History)
    has_ended: bool = False
    writers: list[asyncio.Task[None]] = field(default_factory=list)
    begun_at: dict[int, int] = field(default_factory=dict)
    ended_ns: dict[int, int] = field(default_factory=dict)
    epoch_of: dict[str, int] = field(default_factory=dict)

    async def take_over(self, client: AsyncClient) -> None:
        """Open the next epoch, and begin to write under it."""
        session = client.session(self.session_id)
        epoch = await session.open_writer()
        self.ended_ns[epoch - 1] = time.monotonic_ns()
        self.begun_at[epoch] = session.next_seq or 0
        self.writers.append(asyncio.create_task(self._write(session, epoch)))

    async def _write(self, session: AsyncSession, epoch: int) -> None:
        """Write until refused, and then twice more: the refusal stands."""
        left = 3
        for count in itertools.count():
            name = f"{self.session_id}-{epoch}-{count}"
            self.epoch_of[name] = epoch
            if not await self._append(session, name) or self.has_ended:
                left -= 1
            if left == 0:
                return

    async def _append(self, session: AsyncSession, name: str) -> bool:
        """Append two events; answer whether the epoch allowed it."""
        asked = Append((f"{name}.0", f"{name}.1"))
        operation = Operation(self.session_id, name, asked, time.monotonic_ns())
        self.history.operations.append(operation)
        try:
            appended = await session.append(*map(user, asked.texts), request_id=name)
        except errors.StaleWriterError:
            operation.answer = Refused()
        else:
            operation.answer = Wrote(appended.first_seq, appended.next_seq)
        operation.returned_ns = time.monotonic_ns()
        return operation.is_acknowledged

    def trespasses(self) -> list[str]:
        """Return the writes that stand outside their epoch, or came when its end was known."""
        return [
            f"{operation.request_id} was written at {operation.answer}, epochs {self.begun_at}"
            for operation in self.history.operations
            if isinstance(operation.answer, Wrote) and not self._is_within(operation)
        ]

    def _is_within(self, operation: Operation) -> bool:
        assert isinstance(operation.answer, Wrote)
        epoch = self.epoch_of[operation.request_id]
        end = self.begun_at.get(epoch + 1, operation.answer.next_seq)
        ended_ns = self.ended_ns.get(epoch, operation.invoked_ns)
        begins, ends = operation.answer.first_seq, operation.answer.next_seq
        return self.begun_at[epoch] <= begins and ends <= end and operation.invoked_ns <= ended_ns


def has(history: History, acknowledged: int) -> bool:
    """Whether so many writes were acknowledged."""
    return history.acknowledged >= acknowledged


async def succeed(served: Served, extent: Extent, takeovers: int) -> Outcome:
    """Let writers take a session over from one another, each while the one before writes."""
    succession = Succession(f"succession-{extent.random.getrandbits(48):012x}")
    succession.history.session_ids.append(succession.session_id)
    labels = {"storm": succession.session_id}
    async with two_clients(served) as clients:
        await clients[0].create(succession.session_id, labels=labels)
        for number in range(takeovers):
            await succession.take_over(clients[number % 2])
            wanted = succession.history.acknowledged + extent.random.randint(1, WRITES_PER_EPOCH)
            await until(partial(has, succession.history, wanted))
        succession.has_ended = True
        await asyncio.gather(*succession.writers)
        findings = await audit(clients[1], succession.history.by_session(), labels)
    findings.reordered += succession.trespasses()
    return succession.history.outcome(
        f"a worker replaced while it writes ({served.dialect})",
        findings,
        injected=takeovers,
        control="the writer epoch is not compared",
    )


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_worker_that_was_replaced_is_refused_for_good(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    served = serve(backend)
    outcome = await succeed(served, extent, 8)
    for _ in extent.rounds(short=0, long=10):
        outcome = outcome.plus(await succeed(served, extent, TAKEOVERS_PER_SESSION))
    report(outcome)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_without_epochs_a_replaced_worker_goes_on(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve(backend, f"{UNHEEDED}epochs")
    outcome = await until_harm(lambda: succeed(served, extent, 4), "reordered")
    control(outcome)
    assert outcome.reordered > 0
