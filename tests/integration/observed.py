"""A store that notes what is asked of it, and an application on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from foldlog.application.application import SessionApplication
from foldlog.application.decisions import Guard
from foldlog.application.incoming import Incoming, incoming_events
from foldlog.application.tenant import Tenant
from foldlog.internal.v1.raw_pb2 import RawNewEvent
from foldlog.persistence.recorder import LoopInserter, OnThread
from foldlog.persistence.store import open_store
from foldlog.settings import Settings
from foldlog.v1.event_pb2 import EventBody
from foldlog.v1.message_pb2 import Message


class Observed:
    """Passes calls on to a recorder, counting them and the rows they return."""

    def __init__(self, recorder: Any, calls: Counter[str], rows: Counter[tuple[UUID, int]]) -> None:
        self._recorder = recorder
        self._calls = calls
        self._rows = rows

    def loop_inserter(self) -> Any:
        """Return what inserts from the loop, observed too."""
        inserter = self._recorder.loop_inserter()
        return None if inserter is None else ObservedInserter(inserter, self._calls)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._recorder, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = found(*args, **kwargs)
            self._calls[name] += 1
            if name in {"select_events", "select_versions"}:
                self._rows.update((e.originator_id, e.originator_version) for e in answer)
            return answer

        return call


class ObservedInserter:
    """Passes inserts from the loop on, counting them as what they are."""

    def __init__(self, inserter: LoopInserter, calls: Counter[str]) -> None:
        self._inserter = inserter
        self._calls = calls

    async def insert(self, rows: Sequence[StoredEvent], on_thread: OnThread) -> int:
        """Insert rows."""
        self._calls["insert_events"] += 1
        return await self._inserter.insert(rows, on_thread)

    def close(self) -> None:
        """Close it."""
        self._inserter.close()


class Observation:
    """A tenant's calls, the calls that the store got for them, and the rows it read."""

    def __init__(self, app: SessionApplication) -> None:
        self.app = app
        self.tenant: Tenant = app.tenant()
        self.calls: Counter[str] = Counter()
        self.rows: Counter[tuple[UUID, int]] = Counter()

    def forget(self) -> None:
        """Begin to count anew."""
        self.calls.clear()
        self.rows.clear()


@asynccontextmanager
async def observed(url: str, **settings: Any) -> AsyncIterator[Observation]:
    """Give an application on a store that is observed. The feed, which polls, is not started."""
    store = open_store(url)
    calls: Counter[str] = Counter()
    rows: Counter[tuple[UUID, int]] = Counter()
    seen: Any = replace(
        store,
        recorder=Observed(store.recorder, calls, rows),  # type: ignore[arg-type]
        checkpoints=Observed(store.checkpoints, calls, Counter()),  # type: ignore[arg-type]
    )
    app = SessionApplication(seen, Settings(database_url=url, **settings))
    observation = Observation(app)
    observation.calls, observation.rows = calls, rows
    try:
        yield observation
    finally:
        await app.stop()
        store.close()


def said(role: int, text: str, **fields: Any) -> RawNewEvent:
    """Return an event that says something."""
    body = EventBody(message=Message(role=role, text=text, **fields))  # type: ignore[arg-type]
    return RawNewEvent(body=body.SerializeToString())


async def append(tenant: Tenant, session_id: str, events: list[RawNewEvent]) -> Any:
    """Append a batch in process."""
    batch: list[Incoming] = incoming_events(events, tenant.settings.limits)
    request = tenant.writing.request("")
    write = tenant.writing.append_write(session_id, request, batch, [], Guard())
    return await tenant.writing.write(session_id, write)


async def grown(tenant: Tenant, session_id: str, count: int) -> None:
    """Create a session of so many messages."""
    await tenant.writing.create(session_id, "", {}, "")
    for start in range(0, count, 1_000):
        size = min(1_000, count - start)
        await append(tenant, session_id, [said(2, f"message {start + i}") for i in range(size)])
