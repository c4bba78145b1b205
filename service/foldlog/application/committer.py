"""The committer: what waits is written together, in one transaction.

A commit costs the processor as much as four appends. So where several write at once, those who were
answered a moment ago are awaited for a few milliseconds: most come again, and all are answered
sooner. Who writes alone waits for nobody.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from foldlog import observability
from foldlog.application.readers import Readers, is_held
from foldlog.core.errors import (
    EncryptionKeyMissingError,
    FoldlogError,
    OverloadedError,
    StoreDamagedError,
    StoreUnavailableError,
)
from foldlog.persistence.recorder import STATEMENT_ROWS
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store

MAX_ROWS = 500
MAX_BYTES = 4 * 1024 * 1024
GATHER_S = 0.004
LOOP_BYTES = 256 * 1024  # what takes longer to send is sent by the thread


@dataclass(slots=True)
class Commit:
    """Rows of one session, to be written whole or not at all.

    `is_wanted` is asked just before the write: a commit built on one that failed is dropped.
    """

    rows: Sequence[SessionStoredEvent]
    is_wanted: Callable[[], bool]
    on_stored: Callable[[int], None]
    on_failed: Callable[[Exception], None]
    submitted_at: float = field(default_factory=time.monotonic)

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows' states."""
        return sum(len(row.state) for row in self.rows)


class Committer:
    """One writer for a process. Commits of one session are written in the order given.

    With `wait_s`, one whose turn has not come in that time fails, and nothing of it is written.
    """

    def __init__(self, store: Store, wait_s: float | None = None) -> None:
        self._store = store
        self._wait_s = wait_s
        self._is_store_away = False
        self._threads = Readers(1, "committer")
        self._on_loop = store.recorder.loop_inserter()
        self._waiting: deque[Commit] = deque()
        self._awaited = 0
        self._is_gathered = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def submit(self, commit: Commit) -> None:
        """Queue a commit. Its callbacks run on the loop."""
        self._waiting.append(commit)
        if len(self._waiting) >= self._awaited:
            self._is_gathered.set()
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._drain())

    async def idle(self) -> None:
        """Wait until nothing is queued or being written."""
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    async def close(self) -> None:
        """Write what is queued, then stop."""
        await self.idle()
        if self._on_loop is not None:
            await self._threads.run(self._on_loop.close)
        self._threads.close()

    async def _drain(self) -> None:
        while batch := self._next_batch():
            await self._write(batch)
            await self._gather(len(batch) + len(self._waiting))

    async def _gather(self, active: int) -> None:
        """Wait a little until as many commits wait as there were writers a moment ago."""
        if len(self._waiting) >= active or active == 1:
            return
        self._awaited = active
        self._is_gathered.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_S):
                await self._is_gathered.wait()

    def _next_batch(self) -> list[Commit]:
        batch: list[Commit] = []
        rows = size = 0
        while self._waiting:
            commit = self._waiting[0]
            if not commit.is_wanted():
                self._waiting.popleft()
                continue
            if self._is_overdue(commit):
                self._waiting.popleft().on_failed(self._overdue())
                continue
            rows += len(commit.rows)
            size += commit.size_bytes
            if batch and (rows > MAX_ROWS or size > MAX_BYTES):
                break
            batch.append(self._waiting.popleft())
        return batch

    def _is_overdue(self, commit: Commit) -> bool:
        waited_s = time.monotonic() - commit.submitted_at
        return self._wait_s is not None and waited_s > self._wait_s

    def _overdue(self) -> FoldlogError:
        if self._is_store_away:
            return StoreUnavailableError(cause="the commits before it were not answered")
        return OverloadedError(cause="more is written than the store keeps up with")

    async def _write(self, batch: list[Commit]) -> None:
        rows = [row for commit in batch for row in commit.rows]
        owners = {row.originator_id for row in rows}
        started = time.perf_counter()
        try:
            with observability.tracing.commit_span(len(rows), len(owners)):
                newest = await self._insert(rows)
        except Exception as error:
            if isinstance(error, FoldlogError) and not _is_of_one_session(error):
                self._is_store_away = isinstance(error, StoreUnavailableError)
                for commit in batch:
                    commit.on_failed(error)
            else:
                await self._isolate(batch, len(owners), error)
        else:
            self._is_store_away = False
            observability.metrics.committed(len(rows), len(owners), time.perf_counter() - started)
            for commit in batch:
                commit.on_stored(newest)

    async def _insert(self, rows: list[SessionStoredEvent]) -> int:
        """Write rows in one transaction and return their newest notification id."""
        fits = len(rows) <= STATEMENT_ROWS and sum(len(row.state) for row in rows) <= LOOP_BYTES
        if self._on_loop is not None and fits:
            return await self._on_loop.insert(rows, self._threads.run)
        return max(await self._threads.run(self._store.recorder.insert_events, rows))

    async def _isolate(self, batch: list[Commit], owners: int, error: Exception) -> None:
        """After a conflict or a fault, write each session by itself: only its own fails it."""
        if owners == 1:
            if len(batch) == 1:
                batch[0].on_failed(error)
                return
            for commit in batch:
                if commit.is_wanted():
                    await self._write([commit])
            return
        by_owner: dict[object, list[Commit]] = {}
        for commit in batch:
            by_owner.setdefault(commit.rows[0].originator_id, []).append(commit)
        for commits in by_owner.values():
            await self._write(commits)


def _is_of_one_session(error: Exception) -> bool:
    """Tell whether what a store says of a write need not be so for the sessions beside it."""
    return is_held(error) or isinstance(error, EncryptionKeyMissingError | StoreDamagedError)
