"""The committer: what waits is written together, in one transaction, without a timer."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eventsourcing.persistence import IntegrityError

from foldlog import observability
from foldlog.application.readers import Readers
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store

MAX_ROWS = 500
MAX_BYTES = 4 * 1024 * 1024


@dataclass(slots=True)
class Commit:
    """Rows of one session, to be written whole or not at all.

    `is_wanted` is asked just before the write: a commit built on one that failed is dropped.
    """

    rows: Sequence[SessionStoredEvent]
    is_wanted: Callable[[], bool]
    on_stored: Callable[[int], None]
    on_failed: Callable[[Exception], None]

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows' states."""
        return sum(len(row.state) for row in self.rows)


class Committer:
    """One writer for a process. Commits of one session are written in the order given."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = Readers(1, "committer")
        self._waiting: deque[Commit] = deque()
        self._running: asyncio.Task[None] | None = None

    def submit(self, commit: Commit) -> None:
        """Queue a commit. Its callbacks run on the loop."""
        self._waiting.append(commit)
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._drain())

    async def idle(self) -> None:
        """Wait until nothing is queued or being written."""
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    async def close(self) -> None:
        """Write what is queued, then stop."""
        await self.idle()
        self._threads.close()

    async def _drain(self) -> None:
        while batch := self._next_batch():
            await self._write(batch)

    def _next_batch(self) -> list[Commit]:
        batch: list[Commit] = []
        rows = size = 0
        while self._waiting:
            commit = self._waiting[0]
            if not commit.is_wanted():
                self._waiting.popleft()
                continue
            rows += len(commit.rows)
            size += commit.size_bytes
            if batch and (rows > MAX_ROWS or size > MAX_BYTES):
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _write(self, batch: list[Commit]) -> None:
        rows = [row for commit in batch for row in commit.rows]
        owners = {row.originator_id for row in rows}
        started = time.perf_counter()
        try:
            with observability.tracing.commit_span(len(rows), len(owners)):
                ids = await self._threads.run(self._insert, rows)
        except IntegrityError as error:
            await self._isolate(batch, len(owners), error)
        except Exception as error:
            for commit in batch:
                commit.on_failed(error)
        else:
            observability.metrics.committed(len(rows), len(owners), time.perf_counter() - started)
            newest = max(ids) if ids else 0
            for commit in batch:
                commit.on_stored(newest)

    def _insert(self, rows: list[SessionStoredEvent]) -> Sequence[int]:
        return self._store.recorder.insert_events(rows) or ()

    async def _isolate(self, batch: list[Commit], owners: int, error: Exception) -> None:
        """After a conflict, write each session by itself: only its own conflict fails it."""
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
