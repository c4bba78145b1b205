"""Concurrent workers on a served process, through the real client; what they did is audited."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Final, Self, TypeVar

import foldlog
from foldlog import AsyncClient, AsyncSession, RetryPolicy, errors

from tests.faults.auditing import audit
from tests.faults.histories import (
    Answer,
    Append,
    Asked,
    Failed,
    Findings,
    Operation,
    Read,
    Refused,
    Rewind,
    Saw,
    Wrote,
)
from tests.faults.outcome import Outcome

T = TypeVar("T")
RETRY: Final = RetryPolicy(first_delay_s=0.02, longest_delay_s=0.3)
DEADLINE_S: Final = 120.0
FULL_SEQS: Final = 300
UNKNOWN_FATE: Final = (
    errors.ConnectionLostError,
    errors.DeadlineExceededError,
    errors.OverloadedError,
    errors.ShuttingDownError,
    errors.StoreUnavailableError,
)


@dataclass(slots=True)
class History:
    """Everything that the workers did, and the sessions they did it to."""

    operations: list[Operation] = field(default_factory=list)
    session_ids: list[str] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        """How many writes were answered with their seqs."""
        return sum(operation.is_acknowledged for operation in self.operations)

    def by_session(self) -> dict[str, list[Operation]]:
        """Return the operations on each session."""
        found: dict[str, list[Operation]] = {session_id: [] for session_id in self.session_ids}
        for operation in self.operations:
            found[operation.session_id].append(operation)
        return found

    def longest_silence_s(self) -> float:
        """Return the longest time in which nothing was answered."""
        ends = sorted(each.returned_ns for each in self.operations if each.returned_ns is not None)
        gaps = (later - earlier for earlier, later in itertools.pairwise(ends))
        return max(gaps, default=0) / 1e9

    def outcome(
        self, fault: str, findings: Findings, *, injected: int, control: str, remark: str = ""
    ) -> Outcome:
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
            remark=remark,
        )


@dataclass(frozen=True, slots=True)
class Habits:
    """What workers do: each kind of operation with its weight.

    An attempt that fails with an unknown fate is made again under its request id; but `abandoned`
    in 100 operations are never asked about again. `patience_s` is the client's timeout.
    """

    append: int = 60
    conditional: int = 15
    read: int = 15
    replace: int = 7
    rewind: int = 3
    abandoned: int = 5
    patience_s: float = 20.0

    def weighted(self) -> dict[str, int]:
        """Return the kinds of operations and their weights."""
        kinds = ("append", "conditional", "read", "replace", "rewind")
        return {kind: getattr(self, kind) for kind in kinds}


class Workers:
    """So many workers, each with a client of its own, as a context: they work until its end.

    Worker n talks to address n modulo their count. A session that is full gives way to a new one,
    so that histories stay short enough to be checked against each answer.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        random: Random,
        *,
        count: int = 16,
        sessions: int = 5,
        habits: Habits = Habits(),
    ) -> None:
        self.history = History()
        self._addresses = addresses
        self._count = count
        self._habits = habits
        self._random = random
        self._name = f"{random.getrandbits(48):012x}"
        self._labels = {"storm": self._name}
        self._numbers = itertools.count()
        self._heads = dict.fromkeys((self._new_session() for _ in range(sessions)), 0)
        self._stopping = False
        self._answered = 0
        self._tasks: list[asyncio.Task[None]] = []

    def _new_session(self) -> str:
        session_id = f"{self._name}-{next(self._numbers)}"
        self.history.session_ids.append(session_id)
        return session_id

    async def __aenter__(self) -> Self:
        async with self._client(0) as client:
            for session_id in self._heads:
                await client.create(session_id, labels=self._labels)
        self._tasks = [asyncio.create_task(self._work(n)) for n in range(self._count)]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopping = True
        await asyncio.gather(*self._tasks)

    def _client(self, number: int) -> AsyncClient:
        address = self._addresses[number % len(self._addresses)]
        return AsyncClient(address, timeout_s=self._habits.patience_s, retry=RETRY)

    async def answers(self, count: int) -> None:
        """Wait until so many more operations were answered. A worker's fault is raised here."""
        wanted = self._answered + count
        deadline = time.monotonic() + DEADLINE_S
        while self._answered < wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no {count} answers within {DEADLINE_S} s")
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.005)

    async def audit(self, address: str | None = None) -> Findings:
        """Read every session back, when the work has ended, and hold it to what was answered."""
        async with AsyncClient(address or self._addresses[0], timeout_s=DEADLINE_S) as client:
            return await audit(client, self.history.by_session(), self._labels)

    async def _work(self, number: int) -> None:
        random = Random(f"{self._name}/{number}")
        async with self._client(number) as client:
            for count in itertools.count():
                if self._stopping:
                    return
                session = client.session(await self._session_id(client, random))
                await self._operate(session, random, f"{number}-{count}")

    async def _session_id(self, client: AsyncClient, random: Random) -> str:
        """Choose a session, and replace one that is full."""
        chosen = random.choice(list(self._heads))
        if self._heads[chosen] < FULL_SEQS:
            return chosen
        del self._heads[chosen]
        fresh = self._new_session()
        await _insisting(lambda: client.create(fresh, labels=self._labels, request_id=fresh))
        self._heads[fresh] = 0
        return fresh

    async def _operate(self, session: AsyncSession, random: Random, name: str) -> None:
        asked = self._next_operation(self._heads.get(session.session_id, 0), random, name)
        operation = Operation(session.session_id, name, asked, time.monotonic_ns())
        self.history.operations.append(operation)
        abandons = random.randrange(100) < self._habits.abandoned
        try:
            operation.answer = await _insisting(
                lambda: answered(session, asked, name), abandons=abandons
            )
        except UNKNOWN_FATE:
            return
        operation.returned_ns = time.monotonic_ns()
        self._answered += 1
        if isinstance(operation.answer, Wrote | Saw) and session.session_id in self._heads:
            known = self._heads[session.session_id]
            self._heads[session.session_id] = max(known, operation.answer.next_seq)

    def _next_operation(self, next_seq: int, random: Random, name: str) -> Asked:
        texts = tuple(f"{self._name}:{name}.{part}" for part in range(random.randint(1, 4)))
        kinds = self._habits.weighted() if next_seq >= 2 else {"append": 1}
        (kind,) = random.choices(list(kinds), list(kinds.values()))
        match kind:
            case "conditional":
                return Append(texts, expected_next_seq=next_seq)
            case "read":
                return Read()
            case "replace":
                start = random.randrange(next_seq - 1)
                stop = random.randrange(start, min(start + 6, next_seq))
                return Append(texts[:1], replaces=(start, stop))
            case "rewind":
                return Rewind(random.randrange(next_seq // 2, next_seq))
        return Append(texts)


async def _insisting(attempt: Callable[[], Awaitable[T]], *, abandons: bool = False) -> T:
    """Ask until the fate is known, under the same request id."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return await attempt()
        except UNKNOWN_FATE:
            if abandons or time.monotonic() > deadline:
                raise


async def answered(session: AsyncSession, asked: Asked, request_id: str) -> Answer:
    """Make an operation and return what it was answered. Raises one of UNKNOWN_FATE."""
    try:
        match asked:
            case Read():
                folded = await session.messages()
                surface = tuple((each.seq, str(each.message.content)) for each in folded)
                return Saw(session.next_seq or 0, surface)
            case Rewind(to_seq):
                rewound = await session.rewind(to_seq, request_id=request_id)
                return Wrote(rewound.seq, rewound.next_seq)
            case Append(texts, expected_next_seq, replaces):
                appended = await session.append(
                    *_events(texts, replaces),
                    expected_next_seq=expected_next_seq,
                    request_id=request_id,
                )
                shadowed = appended.replaces[0].shadowed_seqs if appended.replaces else ()
                return Wrote(appended.first_seq, appended.next_seq, shadowed)
    except errors.SeqConflictError as error:
        return Refused(error.next_seq)
    except errors.EmptyRangeError:
        return Refused()
    except UNKNOWN_FATE:
        raise
    except errors.FoldlogError as error:
        return Failed(f"{type(error).__name__}: {error}")


def _events(
    texts: Sequence[str], replaces: tuple[int, int] | None
) -> list[foldlog.Message | foldlog.NewEvent]:
    messages = [foldlog.user(text) for text in texts]
    if replaces is None:
        return list(messages)
    return [foldlog.replacing(messages[0], start=replaces[0], stop=replaces[1])]
