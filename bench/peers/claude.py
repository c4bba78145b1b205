"""Claude Agent SDK: the PostgreSQL store among the examples of its source distribution."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import asyncpg
from claude_agent_sdk import fork_session_via_store, project_key_for_directory

from bench.workload import Json

# Where `make bench` puts the source distribution, beside the packages.
SOURCES: Final = Path(sys.prefix) / "claude"
EXAMPLE: Final = "claude_agent_sdk-*/examples/session_stores/postgres_session_store.py"
BATCH: Final = 500
TIME: Final = "2026-01-01T00:00:00.000Z"


class ExampleMissingError(RuntimeError):
    """The example is not there."""


def example() -> Any:
    """Import the example. Raises ExampleMissingError."""
    found = next(iter(SOURCES.glob(EXAMPLE)), None)
    if found is None:
        raise ExampleMissingError(f"no {EXAMPLE} in {SOURCES}")
    spec = importlib.util.spec_from_file_location(found.stem, found)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[found.stem] = module
    spec.loader.exec_module(module)
    return module


class ClaudeAgents:
    """An entry per message, a batch per turn."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._project = project_key_for_directory(None)

    async def prepare(self) -> None:
        """Make the tables."""
        await self.connect()
        await self._store.create_schema()
        await self.close()

    async def connect(self) -> None:
        """Connect the store."""
        self._pool = await asyncpg.create_pool(self._url, min_size=1, max_size=2)
        self._store = example().PostgresSessionStore(pool=self._pool)

    def _key(self, session_id: str) -> Json:
        return {"project_key": self._project, "session_id": session_id}

    async def session(self, session_id: str) -> Any:
        """Return the session's key, and the entry that the next one follows."""
        entries = await self._store.load(self._key(session_id)) or [{"uuid": None}]
        return {"key": self._key(session_id), "parent": entries[-1]["uuid"]}

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Append the entries of a turn, in one call."""
        entries = []
        for each in turn:
            entries.append(entry(session["key"]["session_id"], each, session["parent"]))
            session["parent"] = entries[-1]["uuid"]
        await self._store.append(session["key"], entries)

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Append entries in batches."""
        session = await self.session(session_id)
        for start in range(0, len(messages), BATCH):
            await self.append(session, messages[start : start + BATCH])

    async def load(self, session_id: str) -> int:
        """Read all entries."""
        return len(await self._store.load(self._key(session_id)))

    async def fork(self, session_id: str, at: int) -> None:
        """Fork with the SDK's own function, at an entry."""
        entries = await self._store.load(self._key(session_id))
        last = entries[at - 1]["uuid"]
        await fork_session_via_store(self._store, session_id, up_to_message_id=last)

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.close()


def entry(session_id: str, given: Json, parent: str | None) -> Json:
    """Return a message as an entry of a transcript."""
    role = "assistant" if given["role"] == "assistant" else "user"
    return {
        "type": role,
        "uuid": str(uuid4()),
        "parentUuid": parent,
        "sessionId": session_id,
        "timestamp": TIME,
        "isSidechain": False,
        "message": {"role": role, "content": list(_blocks(given))},
    }


def _blocks(given: Json) -> list[Json]:
    if given["role"] == "tool":
        named = {"tool_use_id": given["tool_call_id"], "content": given["content"]}
        return [{"type": "tool_result", **named}]
    return [{"type": "text", "text": given["content"]}] + [
        {
            "type": "tool_use",
            "id": each["id"],
            "name": each["function"]["name"],
            "input": json.loads(each["function"]["arguments"]),
        }
        for each in given.get("tool_calls", ())
    ]
