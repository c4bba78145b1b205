"""The feed: follows what every process commits, keeps the index, and wakes those who watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from eventsourcing.persistence import IntegrityError, Notification

from foldlog import observability
from foldlog.application.lanes import LanePool
from foldlog.application.projection import IndexProjection
from foldlog.application.readers import Readers
from foldlog.core.errors import FoldlogError, StoreUnavailableError
from foldlog.persistence.entries import IndexEntry
from foldlog.persistence.object_table import Reference
from foldlog.persistence.store import Store

PAGE = 500
PAGE_BYTES = 16 * 1024 * 1024
WATCH_BYTES = 1024 * 1024  # what a watch keeps in memory while its reader does not take it
PAUSE_S = 0.05  # between two looks, so that many commits are one of them
INDEX_EVERY_S = 0.25  # unless somebody waits for it: many commits are one transaction of the index
INDEX_WAIT_S = 10.0
FINISH_S = 2.0


class Feed:
    """One follower a process. A hint, a commit of this process or a poll sets it going."""

    def __init__(self, store: Store, lanes: LanePool, poll_s: float) -> None:
        self._store = store
        self._lanes = lanes
        self._poll_s = poll_s
        self._projection = IndexProjection(store.index)
        self._threads = Readers(2, "feed")
        self._hint = asyncio.Event()
        self._urgent = asyncio.Event()
        self._moved = asyncio.Condition()
        self._own = self._noted = 0
        self._seen = 0
        self._indexed = 0
        self._wanted = 0
        self._is_kept_elsewhere = False  # whether another process moved the index on last
        self._index_at_s = 0.0  # when the index is due again; of the loop's clock
        self._is_owed = False  # whether something came for which the index was not due
        self._watches = 0
        self._is_watched = asyncio.Event()
        self._interruption = ""
        self.passed = 0  # how many rows were seen since the start
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to follow."""
        recorder, index = self._store.recorder, self._store.index
        newest: int | None = await self._threads.run(recorder.max_notification_id)
        indexed: int | None = await self._threads.run(index.position)
        self._seen, self._indexed = newest or 0, indexed or 0
        # Listings are to have what was acknowledged before the start, too.
        self._own = await self._threads.run(recorder.last_stored_id)
        self._tasks = [asyncio.create_task(self._follow())]
        if not self._store.is_exclusive:
            self._tasks.append(asyncio.create_task(self._listen()))

    async def close(self) -> None:
        """Stop following."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._tasks:
            await self._finish()
        self._threads.close()

    async def _finish(self) -> None:
        """Let the index have what was written: the next process may lack the keys to it."""
        try:
            async with asyncio.timeout(FINISH_S):
                await self._wake_lanes()
                while await self._index():
                    pass
        except Exception as error:  # whatever it is, the rest is closed
            self._note_interruption(error)

    def note_stored(self, notification_id: int) -> None:
        """Take note of a commit of this process, and of each write in it."""
        if notification_id == self._noted:
            return
        self._noted = notification_id
        self._own = max(self._own, notification_id)
        self._hint.set()
        if not self._store.is_exclusive:
            self._store.recorder.notify()

    async def indexed(self, notification_id: int = 0) -> None:
        """Wait until the index has passed what this process wrote before the call, and a row."""
        wanted = max(self._own, notification_id)
        if self._indexed >= wanted:
            return
        self._wanted = max(self._wanted, wanted)
        self._urgent.set()
        self._hint.set()
        try:
            async with asyncio.timeout(INDEX_WAIT_S), self._moved:
                await self._moved.wait_for(lambda: self._indexed >= wanted)
        except TimeoutError:
            raise StoreUnavailableError(cause="the index does not keep up") from None

    async def settled(self) -> None:
        """Wait until the index has passed what any process wrote before the call.

        Perhaps it may not be read yet, since an earlier write is under way.
        """
        await self.indexed(await self._threads.run(self._store.recorder.last_stored_id))

    async def newest(self) -> int:
        """Return the place of the newest row that may be read, whosever it is; 0 if none is."""
        newest: int | None = await self._threads.run(self._store.recorder.max_notification_id)
        return newest or 0

    async def position(self) -> int:
        """Return how far the index is, as it is stored."""
        position: int | None = await self._threads.run(self._store.index.position)
        return position or 0

    async def entry(self, aggregate_id: UUID) -> IndexEntry | None:
        """Return what the index holds of a session, deleted or not."""
        return await self._threads.run(self._store.index.entry, aggregate_id)

    async def references(self, aggregate_id: UUID) -> tuple[list[Reference], int]:
        """Return what is noted of a session's attachments, and up to where in the feed."""
        return await self._threads.run(self._store.objects.table.references, aggregate_id)

    async def misfiled_checkpoints(self, aggregate_id: UUID, tenant: str) -> list[int]:
        """Return the versions of a session's checkpoints that are filed under another tenant."""
        return await self._threads.run(self._store.checkpoints.misfiled, aggregate_id, tenant)

    async def _listen(self) -> None:
        """Pass on hints of other processes while somebody watches: nobody else is in a hurry."""
        recorder = self._store.recorder
        threads = Readers(1, "hints")
        try:
            while True:
                await self._is_watched.wait()
                if await threads.run(recorder.wait_for_hint, self._poll_s):
                    self._hint.set()
                    await asyncio.sleep(PAUSE_S)  # our own commits hint as well, each of them
        finally:
            threads.close()

    async def _follow(self) -> None:
        while True:
            try:
                await self._step()
            except (FoldlogError, OSError) as error:
                self._note_interruption(error)
                await asyncio.sleep(self._poll_s)
            except Exception as error:  # the follower outlives any fault
                observability.log("feed.failed", level="error", error=error)
                await asyncio.sleep(self._poll_s)
            else:
                self._note_interruption(None)
            await self._rest()

    def _note_interruption(self, error: Exception | None) -> None:
        """Log an interruption once, not at each attempt: it may be the disk that is full."""
        said = "" if error is None else str(error)
        if said != self._interruption:
            self._interruption = said
            if error is None:
                observability.log("feed.resumed")
            else:
                observability.log("feed.interrupted", level="warning", error=error)

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(PAUSE_S):
                await self._urgent.wait()
        except TimeoutError:
            pass
        self._urgent.clear()
        until_due_s = max(0.0, self._index_at_s - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(until_due_s if self._is_owed else self._poll_s):
                await self._hint.wait()
        except TimeoutError:
            pass
        self._hint.clear()

    async def _step(self) -> None:
        now_s = asyncio.get_running_loop().time()
        is_due = now_s >= self._index_at_s or self._indexed < self._wanted
        self._is_owed = not is_due
        if is_due or self._watches:
            await self._wake_lanes()
        if is_due:
            if await self._has_to_index():
                while await self._index():
                    pass
            # Who leaves it to another looks less often than that one, and so finds it moved on.
            self._index_at_s = now_s + INDEX_EVERY_S * (2 if self._is_kept_elsewhere else 1)
        async with self._moved:
            self._moved.notify_all()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look for what other processes write as soon as they hint, while somebody watches.

        To be entered before the store is looked at: rows that are stored after that look are told.
        """
        self._watches += 1
        self._is_watched.set()
        try:
            yield
        finally:
            self._watches -= 1
            if not self._watches:
                self._is_watched.clear()

    async def _wake_lanes(self) -> None:
        if await self._passed_by():
            return
        recorder = self._store.recorder
        while changes := await self._threads.run(recorder.select_changes, self._seen, PAGE):
            for _, aggregate_id, version in changes:
                lane = self._lanes.known(aggregate_id)
                if lane is not None and lane.head.version < version:
                    lane.note_stored_elsewhere(version)
            self._seen = changes[-1][0]
            self.passed += len(changes)

    async def _has_to_index(self) -> bool:
        """Tell whether the index lacks something, and no other process is at it.

        Whoever finds that the index was moved since its own last turn leaves this one to those that
        moved it: else each process would read and decode every row, and all but one for nothing.
        """
        wanted = self._seen
        if not self._store.is_exclusive:
            reached = await self.position()
            self._is_kept_elsewhere = reached != self._indexed
            if self._is_kept_elsewhere:
                self._indexed, wanted = reached, self._wanted
                self._is_owed = True  # should they stop before the end, the next turn finds it
        is_lacking = self._indexed < wanted
        if not is_lacking:
            observability.metrics.index_lag(0)
        return is_lacking

    async def _passed_by(self) -> bool:
        """Go on to the feed's end without its rows, and tell so, if nobody is to be woken by them.

        Whoever began to watch meanwhile may lack rows before that end: then they are looked at.
        """
        if not self._watches:
            newest = await self.newest()
            if not self._watches:
                self._seen = max(self._seen, newest)
                return True
        return False

    async def _index(self) -> bool:
        """Apply the next stretch. Returns whether there may be more."""
        found = await self._threads.run(
            self._store.recorder.select_notifications,
            self._indexed,
            PAGE,
            inclusive_of_start=False,
            max_bytes=PAGE_BYTES,
        )
        observability.metrics.index_lag(len(found))
        if not found:
            return False
        try:
            await self._threads.run(self._projection.process, found, self._indexed)
            self._indexed = found[-1].id
        except IntegrityError:
            self._is_kept_elsewhere = True
            self._indexed = await self.position()
        async with self._moved:
            self._moved.notify_all()
        return self._indexed < self._seen

    @property
    def place(self) -> int:
        """The place of the newest row that was seen."""
        return self._seen

    async def count(self, tenant: str, after_id: int, most: int) -> int:
        """Return how many rows of a tenant come after a place, up to as many as matter."""
        counting = self._store.recorder.count_tenant_rows
        return await self._threads.run(counting, tenant, after_id, most)

    async def watch(
        self, after_id: int, tenant: str
    ) -> AsyncIterator[Sequence[Notification] | None]:
        """Yield a tenant's rows after an id, a page at a time, and None each time all is told."""
        with self.watched():
            async for page in self._watch(after_id, tenant):
                yield page

    async def _watch(
        self, after_id: int, tenant: str
    ) -> AsyncIterator[Sequence[Notification] | None]:
        recorder = self._store.recorder
        while True:
            found, reached = await self._threads.run(
                recorder.select_tenant_notifications, tenant, after_id, PAGE, WATCH_BYTES
            )
            if found:
                yield found
            after_id = max(after_id, reached)
            # What comes meanwhile is awaited: many commits are one look.
            if after_id < self._seen:
                continue
            yield None
            async with self._moved:
                if self._seen <= after_id:
                    try:
                        async with asyncio.timeout(30):
                            await self._moved.wait()
                    except TimeoutError:
                        pass
