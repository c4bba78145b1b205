"""What is committed together, and who is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from foldlog.application import committer as committing
from foldlog.application.committer import Commit, Committer
from foldlog.persistence.rows import SessionStoredEvent

FOR_EVER_S = 3_600.0
DEADLINE_S = 30.0


class Store:
    """Stores nothing, and remembers what was written together."""

    def __init__(self) -> None:
        self.inserted: list[list[int]] = []
        self.recorder = SimpleNamespace(
            loop_inserter=lambda: None, insert_events=self._insert_events
        )

    def _insert_events(self, rows: Sequence[SessionStoredEvent]) -> list[int]:
        self.inserted.append([row.originator_version for row in rows])
        return list(range(len(rows)))


class Writer:
    """Writes a number of rows, one after the other: the next when the one before is stored."""

    def __init__(self, committer: Committer, name: int, count: int) -> None:
        self._committer, self._name, self._left = committer, name, count
        self.done = asyncio.Event()

    def write(self) -> None:
        """Write the next row."""
        if not self._left:
            self.done.set()
            return
        self._left -= 1
        row = SessionStoredEvent(UUID(int=self._name), self._name, "event", b"")
        self._committer.submit(Commit([row], lambda: True, self._on_stored, self._on_failed))

    def _on_stored(self, _: int) -> None:
        # As an answer and the next call do, it takes turns of the loop.
        asyncio.get_running_loop().call_later(0.001, self.write)

    def _on_failed(self, error: Exception) -> None:
        raise error


async def written(counts: Sequence[int]) -> list[list[int]]:
    """Let writers write so many rows each; return what was written together."""
    store: Any = Store()
    committer = Committer(store)
    writers = [Writer(committer, name, count) for name, count in enumerate(counts)]
    async with asyncio.timeout(DEADLINE_S):
        for each in writers:
            each.write()
        for each in writers:
            await each.done.wait()
        await committer.close()
    return [sorted(together) for together in store.inserted]


async def test_those_who_write_at_once_share_their_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "GATHER_S", 2.0)
    assert await written([5, 5, 5]) == [[0, 1, 2]] * 5


async def test_who_writes_alone_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committing, "GATHER_S", FOR_EVER_S)
    assert await written([5]) == [[0]] * 5


async def test_who_does_not_come_again_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committing, "GATHER_S", 0.05)
    assert await written([1, 3]) == [[0, 1], [1], [1]]
