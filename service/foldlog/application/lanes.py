"""The lanes of a process: found by session, pinned in use, forgotten when memory runs short.

A tenant's calls come to them through `Lanes`, which shows a caller what is in the caller's scope.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from foldlog import observability
from foldlog.application.domain import Session
from foldlog.application.identity import aggregate_id
from foldlog.application.lane import AbsentLane, Lane, Services
from foldlog.application.scope import Scope
from foldlog.core.errors import EventCorruptError, SessionNotFoundError
from foldlog.core.validation import validate_session_id
from foldlog.persistence.rows import AUDIT_SESSION

MAX_LANES = 20_000
CHECKPOINT_ROWS = 1_000
COMPACTED = 100  # a replace of so many messages is owed a checkpoint: whoever opens needs few rows
SWEEP_EVERY = 256  # uses
NEW_LANES = 16  # are as good as that: they grow
TURN_ENTRIES = 2_000  # of a fold, looked at in a turn of the loop


class LanePool:
    """Every session this process knows something about."""

    def __init__(self, services_of: Callable[[str], Services], cache_bytes: int) -> None:
        self._services_of = services_of
        self._cache_bytes = cache_bytes
        self._lanes: OrderedDict[UUID, Lane] = OrderedDict()
        self._uses = 0
        self._unused: set[UUID] = set()
        self._size_bytes = 0
        self._background: set[asyncio.Task[None]] = set()
        self._later: set[asyncio.Task[None]] = set()

    def lane(self, id_: UUID, tenant: str) -> Lane:
        """Return the lane of an aggregate id, to be pinned before anything else is done."""
        self._uses += 1
        if self._uses >= SWEEP_EVERY:
            self._uses = 0
            self._sweep()
        lane = self._lanes.get(id_)
        if lane is None:
            self._uses += SWEEP_EVERY // NEW_LANES
            lane = self._lanes[id_] = Lane(self._services_of(tenant), id_, tenant)
        self._lanes.move_to_end(id_)
        self._unused.discard(id_)
        return lane

    def known(self, id_: UUID) -> Lane | None:
        """Return the lane of an aggregate id if there is one."""
        return self._lanes.get(id_)

    def _sweep(self) -> None:
        """Forget the lanes used longest ago until the rest fits."""
        size = sum(lane.size_bytes for lane in self._lanes.values())
        for id_, lane in list(self._lanes.items()):
            if size <= self._cache_bytes and len(self._lanes) <= MAX_LANES:
                break
            if lane.is_idle:
                size -= lane.size_bytes
                del self._lanes[id_]
        self._size_bytes = size

    def forget_unused(self) -> int:
        """Forget the lanes that nobody used since the call before; return how many those were."""
        forgotten = 0
        for id_ in self._unused:
            lane = self._lanes.get(id_)
            if lane is not None and lane.is_idle:
                del self._lanes[id_]
                forgotten += 1
        self._unused = set(self._lanes)
        return forgotten

    def note_fold_wanted(self, is_cached: bool) -> None:
        """Count a look into the cache of folds."""
        observability.metrics.fold_cache(self._size_bytes, hit=is_cached)

    def note_stored(self, lane: Lane, events: Sequence[Session.Event]) -> None:
        """Take off the request path what a session that grew is owed: a checkpoint now and then."""
        observability.metrics.events_appended(len(events))
        grown = lane.head.version - lane.checkpoint_version
        if grown >= CHECKPOINT_ROWS or _compacts(events):
            lane.checkpoint_version = lane.head.version
            self.in_background(self.checkpoint(lane))

    async def checkpoint(self, lane: Lane) -> None:
        """Write a checkpoint of a session's head and fold."""
        lane.pins += 1
        try:
            fold = await lane.current_fold()
            while not fold.find_runs(TURN_ENTRIES):
                await asyncio.sleep(0)
            head, copy = lane.head.copy(), fold.copy()
            services = lane.services
            await services.readers.run(services.history.save_checkpoint, head, copy)
        except Exception as error:  # a cache: its loss costs time only
            observability.log(
                "checkpoint.failed",
                level="warning",
                session=lane.head.session_id,
                error=error,
            )
        finally:
            lane.pins -= 1

    def in_background(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that nobody waits for."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def later(self, wait_s: float, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do something after a while, unless the process ends before."""

        async def waiting() -> None:
            await asyncio.sleep(wait_s)
            self.in_background(work())

        task = asyncio.get_running_loop().create_task(waiting())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def close(self) -> None:
        """Wait for what runs in the background."""
        for task in self._later:
            task.cancel()
        while self._background:
            await asyncio.wait(self._background)


def _compacts(events: Sequence[Session.Event]) -> bool:
    """Tell whether one of these replaces many messages."""
    return any(len(event.envelope.replace.shadowed_seqs) >= COMPACTED for event in events)


class Use:
    """A lane in use, from the beginning of a block to its end. A class: each call has one."""

    __slots__ = ("_lane", "_lanes", "_session_id")

    def __init__(self, lane: Lane, session_id: str, lanes: Lanes) -> None:
        self._lane, self._session_id, self._lanes = lane, session_id, lanes

    async def __aenter__(self) -> Lane:
        self._lane.pins += 1
        try:
            is_shown = await self._lanes.shows(self._lane)
        except BaseException:
            self._lane.pins -= 1
            raise
        return self._lane if is_shown else AbsentLane(self._lane, self._session_id)

    async def __aexit__(self, *_: object) -> None:
        self._lane.pins -= 1


class Lanes:
    """The lanes as a caller sees them: a session that is not in the scope is absent."""

    def __init__(self, pool: LanePool, scope: Scope, id_bytes: int) -> None:
        self.pool = pool
        self._scope = scope
        self._id_bytes = id_bytes

    def use(self, tenant: str, session_id: str) -> Use:
        """Give a session's lane, which is not forgotten before the block ends.

        A session is judged once, when the block begins. Raises InvalidFieldError or TooLargeError
        for what can be no session's id.
        """
        validate_session_id(session_id, self._id_bytes)
        lane = self.pool.lane(aggregate_id(tenant, session_id), tenant)
        return Use(lane, session_id, self)

    async def shows(self, lane: Lane) -> bool:
        """Tell whether a lane's session is in the scope, or is not there. An unreadable is not."""
        if lane.is_reserved and not self._scope.sees_audit:
            return False
        if self._scope.is_whole:
            return True
        try:
            head = await lane.refresh()
        except EventCorruptError:
            return False
        return not head.exists or self._scope.permits(head.labels)

    async def show(self, tenant: str, session_id: str) -> bool:
        """Tell whether a session of this id is in the scope, or absent for everybody."""
        if self._scope.is_whole and session_id != AUDIT_SESSION:
            return True
        if not session_id:
            return False  # a damaged row does not say whose it is
        async with self.use(tenant, session_id) as lane:
            return not lane.is_hidden

    def require_shown(self, lane: Lane, session_id: str) -> None:
        """Raise SessionNotFoundError if a lane's session has left the scope."""
        if not self._scope.permits(lane.head.labels):
            raise SessionNotFoundError(session_id=session_id)

    def known(self, id_: UUID) -> Lane | None:
        """Return the lane of an aggregate id if there is one, whatever the scope."""
        return self.pool.known(id_)
