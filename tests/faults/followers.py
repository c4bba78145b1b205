"""Follows the feed of every session while others write, and tells what it missed or saw twice."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from foldlog import AsyncClient, Event

from tests.faults.attempts import RETRY
from tests.faults.waiting import DEADLINE_S, until


class Follower:
    """Reads the feed from the present on, as a context."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._seen: defaultdict[str, list[int]] = defaultdict(list)
        self._began = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow())
        await asyncio.wait_for(self._began.wait(), DEADLINE_S)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _follow(self) -> None:
        async with AsyncClient(self._address, retry=RETRY) as client:
            async for each in client.watch_all(from_now=True):
                self._began.set()
                if isinstance(each.item, Event):
                    self._seen[each.session_id].append(each.item.seq)

    async def complaints(self, wanted: Mapping[str, range]) -> list[str]:
        """Wait for what each session's own log holds, and return where the feed differs."""
        with suppress(TimeoutError):
            await until(lambda: all(len(self._seen[s]) >= len(wanted[s]) for s in wanted))
        return [
            f"the feed of {session_id} said {self._seen[session_id]}, the log has {seqs}"
            for session_id, seqs in wanted.items()
            if self._seen[session_id] != list(seqs)
        ]
