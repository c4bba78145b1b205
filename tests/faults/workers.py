"""Concurrent workers on a served process, through the real client; what they did is audited."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Final, Self

from foldlog import AsyncClient, AsyncSession

from tests.faults.attempts import RETRY, UNKNOWN_FATE, hurried, insisting
from tests.faults.auditing import audit
from tests.faults.histories import Answer, Findings, Fork, Forked, Operation, Saw, Wrote
from tests.faults.outcome import Outcome
from tests.faults.plans import EVERYTHING, Habits
from tests.faults.waiting import DEADLINE_S, until

FULL_SEQS: Final = 300


@dataclass(slots=True)
class History:
    """Everything that was done, and the sessions it was done to.

    `unknown_fates` counts attempts.
    """

    operations: list[Operation] = field(default_factory=list)
    session_ids: list[str] = field(default_factory=list)
    unknown_fates: int = 0

    @property
    def acknowledged(self) -> int:
        """How many writes were answered."""
        return sum(operation.is_acknowledged for operation in self.operations)

    def by_session(self) -> dict[str, list[Operation]]:
        """Return the operations on each session; a fork comes after its parent."""
        found: dict[str, list[Operation]] = {session_id: [] for session_id in self.session_ids}
        for operation in self.operations:
            found[operation.session_id].append(operation)
        return found

    def longest_silence_s(self) -> float:
        """Return the longest time in which nothing was answered."""
        ends = sorted(each.returned_ns for each in self.operations if each.returned_ns is not None)
        gaps = (later - earlier for earlier, later in itertools.pairwise(ends))
        return max(gaps, default=0) / 1e9

    def outcome(self, fault: str, findings: Findings, *, injected: int, control: str) -> Outcome:
        """Return the row of a storm with what an audit found."""
        return Outcome(
            fault=fault,
            injected=injected,
            operations=len(self.operations),
            acknowledged=self.acknowledged,
            lost=len(findings.lost),
            doubled=len(findings.doubled),
            reordered=len(findings.reordered),
            unavailable_s=self.longest_silence_s(),
            control=control,
            unsound=len(findings.unsound),
            remark="",
            examples=findings.examples(),
        )


class Workers:
    """So many workers, each with a client of its own, as a context: they work until its end.

    Worker n talks to address n modulo their count. A session that is full gives way to a new one,
    so that histories stay short enough to be checked against each answer; one that is forked gives
    way to its child.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        random: Random,
        *,
        count: int = 16,
        sessions: int = 5,
        habits: Habits = EVERYTHING,
    ) -> None:
        self.history = History()
        self.answered = 0
        self._addresses = addresses
        self._count = count
        self._habits = habits
        self._name = f"{random.getrandbits(48):012x}"
        self.labels = {"storm": self._name}
        self._numbers = itertools.count()
        self._heads = dict.fromkeys((self._new_session() for _ in range(sessions)), 0)
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def _new_session(self) -> str:
        session_id = f"{self._name}-{next(self._numbers)}"
        self.history.session_ids.append(session_id)
        return session_id

    async def __aenter__(self) -> Self:
        async with self._client(0) as client:
            for session_id in self._heads:
                await client.create(session_id, labels=self.labels)
        self._tasks = [asyncio.create_task(self._work(n)) for n in range(self._count)]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping = True
        if kind is not None:
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=kind is not None)

    def _client(self, number: int) -> AsyncClient:
        return AsyncClient(self._addresses[number % len(self._addresses)], retry=RETRY)

    async def answers(self, count: int) -> None:
        """Wait until so many more operations were answered. A worker's fault is raised here."""
        wanted = self.answered + count
        await until(lambda: self.answered >= wanted or any(task.done() for task in self._tasks))
        for task in self._tasks:
            if task.done():
                task.result()

    async def audit(self, address: str | None = None) -> Findings:
        """Read every session back, when the work has ended, and hold it to what was answered."""
        async with AsyncClient(address or self._addresses[0], timeout_s=DEADLINE_S) as client:
            return await audit(client, self.history.by_session(), self.labels)

    async def _work(self, number: int) -> None:
        random = Random(f"{self._name}/{number}")
        async with self._client(number) as client:
            for count in itertools.count():
                if self._stopping:
                    return
                session = client.session(await self._session_id(client, random))
                await self._operate(session, random, f"{self._name}-{number}-{count}")

    async def _session_id(self, client: AsyncClient, random: Random) -> str:
        """Choose a session, and replace one that is full."""
        chosen = random.choice(list(self._heads))
        if self._heads[chosen] < FULL_SEQS:
            return chosen
        del self._heads[chosen]
        fresh = self._new_session()
        await insisting(lambda: client.create(fresh, labels=self.labels, request_id=fresh))
        self._heads[fresh] = 0
        return fresh

    async def _operate(self, session: AsyncSession, random: Random, name: str) -> None:
        head = self._heads.get(session.session_id, 0)
        asked = self._habits.next_operation(random, head, name, self.labels)
        operation = Operation(session.session_id, name, asked, time.monotonic_ns())
        self.history.operations.append(operation)
        abandons = random.randrange(100) < self._habits.abandoned and not isinstance(asked, Fork)
        try:
            operation.answer = await insisting(
                lambda: self._attempt(session, operation, random), abandons=abandons
            )
        except UNKNOWN_FATE:
            return
        operation.returned_ns = time.monotonic_ns()
        self.answered += 1
        self._note(operation)

    async def _attempt(self, session: AsyncSession, operation: Operation, random: Random) -> Answer:
        asked, name = operation.asked, operation.request_id
        try:
            return await hurried(session, asked, name, self._habits, random)
        except UNKNOWN_FATE:
            self.history.unknown_fates += 1
            raise

    def _note(self, operation: Operation) -> None:
        """Learn from an answer where a session is, and that it has a child."""
        session_id = operation.session_id
        match operation.asked, operation.answer:
            case Fork(child_id), Forked(next_seq):
                self.history.session_ids.append(child_id)
                self._heads.pop(session_id, None)
                self._heads[child_id] = next_seq
            case _, (Wrote() | Saw()) as told if session_id in self._heads:
                self._heads[session_id] = max(self._heads[session_id], told.next_seq)
