"""Quotas: what a tenant may use, what it uses, and who is over.

Sessions and bytes are counted with the session index, by whichever process; a process adds what it
has written and the index has yet to see, so that it oversteps nothing. What other processes wrote
since the last look, which is at most FRESH_S old, it does not know. Calls and watches are counted
by each process for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from foldlog import observability
from foldlog.application.readers import Readers
from foldlog.core.errors import FoldlogError, QuotaExceededError, StoreUnavailableError
from foldlog.persistence.quotas import Quotas, QuotaTable, Usage

FRESH_S = 5.0
AGAIN_S = 0.25  # between two looks while the tenant is over, which may have made room


@dataclass(eq=False, slots=True)
class Cost:
    """What a write adds, until the index has counted it."""

    sessions: int
    size_bytes: int
    notification_id: int | None = None


class Meter:
    """The quotas of one tenant in this process. A limit of 0 is none."""

    def __init__(
        self,
        tenant: str,
        table: QuotaTable,
        defaults: Quotas,
        readers: Readers,
        is_on: bool,
        counted: Callable[[], Awaitable[None]],
    ) -> None:
        self._tenant = tenant
        self._table = table
        self._defaults = defaults
        self._readers = readers
        self._is_on = is_on
        self._counted = counted
        self._limits = defaults
        self._usage = Usage()
        self._read_at_s: float | None = None
        self._reading: asyncio.Task[None] | None = None
        self._is_over = False
        self._costs: set[Cost] = set()
        self._waiting = Usage()  # what the costs come to
        self._puts: deque[tuple[float, int]] = deque()
        self._calls = 0.0
        self._call_at_s = time.monotonic()
        self._watches = 0

    # What is known

    async def ready(self) -> None:
        """Know the limits and the use: wait for a look only where there was none, or no room."""
        if not self._is_on:
            return
        age_s = None if self._read_at_s is None else time.monotonic() - self._read_at_s
        if age_s is None or (self._is_over and age_s >= AGAIN_S):
            await asyncio.shield(self._look())
        elif age_s >= FRESH_S:
            self._look().add_done_callback(_noted)

    def _look(self) -> asyncio.Task[None]:
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        began_s = time.monotonic()
        try:
            if self._read_at_s is None:
                await self._all_counted()
            found = await self._readers.run(self._table.standing, self._tenant, self._defaults)
        except FoldlogError:
            if self._read_at_s is None:
                raise
            self._read_at_s = began_s  # the database is away: what is known stands
            return
        finally:
            self._reading = None
        self._limits, self._usage, position = found
        self._read_at_s, self._is_over = began_s, False
        counted = [c for c in self._costs if c.notification_id and c.notification_id <= position]
        for cost in counted:
            self.release(cost)
        while self._puts and self._puts[0][0] < began_s:
            self._puts.popleft()

    async def _all_counted(self) -> None:
        """Let the index count what was written before this process began. A late one is not it."""
        try:
            await self._counted()
        except StoreUnavailableError as error:
            observability.log("quotas.uncounted", level="warning", error=error)

    # Sessions and bytes

    def charge(self, sessions: int, size_bytes: int, *, may_refuse: bool = True) -> Cost | None:
        """Take room for a write that is to come. Raises QuotaExceededError where there is none."""
        if not (self._is_on and (self._limits.sessions or self._limits.bytes)):
            return None
        if may_refuse:
            used = self._usage.sessions + self._waiting.sessions
            self._require("sessions", self._limits.sessions, used, sessions)
            self.require_bytes(size_bytes)
        cost = Cost(sessions, size_bytes)
        self._costs.add(cost)
        self._wait_for(sessions, size_bytes)
        return cost

    def _wait_for(self, sessions: int, size_bytes: int) -> None:
        waiting = self._waiting
        self._waiting = Usage(waiting.sessions + sessions, waiting.bytes + size_bytes)

    def require_bytes(self, size_bytes: int) -> None:
        """Raise QuotaExceededError unless there is room for so many bytes more."""
        used = self._usage.bytes + self._waiting.bytes + sum(size for _, size in self._puts)
        self._require("bytes", self._limits.bytes, used, size_bytes)

    @property
    def limits_bytes(self) -> bool:
        """Whether bytes have a limit."""
        return self._is_on and bool(self._limits.bytes)

    def _require(self, quota: str, limit: int | None, used: int, more: int) -> None:
        if limit and more > 0 and used + more > limit:
            self._is_over = True
            raise QuotaExceededError(quota=quota, limit=limit, used=used)

    def stored(self, cost: Cost | None, notification_id: int) -> None:
        """Note where in the feed a write is, so that it counts until the index has it."""
        if cost is not None:
            cost.notification_id = notification_id

    def release(self, cost: Cost | None) -> None:
        """Give back the room of a write that was not stored."""
        if cost is not None and cost in self._costs:
            self._costs.remove(cost)
            self._wait_for(-cost.sessions, -cost.size_bytes)

    def freed(self, size_bytes: int) -> None:
        """Count bytes that were taken out of stored rows, as all are counted. Blocking."""
        if size_bytes:
            self._table.count(self._tenant, 0, -size_bytes)

    def put(self, size_bytes: int) -> None:
        """Note an attachment that was stored."""
        if self._is_on:
            self._puts.append((time.monotonic(), size_bytes))

    # Calls and watches

    def count_call(self) -> None:
        """Count a call. Raises QuotaExceededError for more than the limit in about a second."""
        limit = self._limits.calls_per_s
        if not (self._is_on and limit):
            return
        now_s = time.monotonic()
        self._calls = max(0.0, self._calls - (now_s - self._call_at_s) * limit)
        self._call_at_s = now_s
        if self._calls + 1 > limit:
            raise QuotaExceededError(quota="calls_per_s", limit=limit, used=limit)
        self._calls += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count a watch while it is open. Raises QuotaExceededError for one too many."""
        limit = self._limits.watches
        if self._is_on and limit and self._watches >= limit:
            raise QuotaExceededError(quota="watches", limit=limit, used=self._watches)
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1


def _noted(look: asyncio.Task[None]) -> None:
    """Take note of a look that nobody waited for."""
    if not look.cancelled() and look.exception() is not None:
        observability.log("quotas.unreadable", level="warning", error=look.exception())
