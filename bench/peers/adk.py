"""Google ADK: DatabaseSessionService on asyncpg."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import asyncpg
from google.adk.events import Event
from google.adk.sessions import DatabaseSessionService
from google.genai import types

from bench.workload import TOOL, Json

APP: Final = "bench"
USER: Final = "user"
# Makes a session longer that was written event by event: its events again, under other ids.
MULTIPLY: Final = """
    INSERT INTO events
    SELECT (jsonb_populate_record(e, jsonb_build_object('id', e.id || '-' || n))).*
    FROM events e CROSS JOIN generate_series(1, $2 - 1) n WHERE e.session_id = $1
"""
WRITTEN: Final = 40


class GoogleADK:
    """Events go one by one: there is no call for several, and none to fork."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def prepare(self) -> None:
        """Make the tables, which the service does when it is first used."""
        await self.connect()
        await self.session(str(uuid4()))
        await self.close()

    async def connect(self) -> None:
        """Make the service."""
        url = self._url.replace("postgresql://", "postgresql+asyncpg://")
        self._service = DatabaseSessionService(db_url=url)

    async def session(self, session_id: str) -> Any:
        """Read the session, as a runner does, or create it."""
        named = {"app_name": APP, "user_id": USER, "session_id": session_id}
        found = await self._service.get_session(**named)
        return found or await self._service.create_session(**named)

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Append the first events, and multiply them in the database."""
        await self.append(await self.session(session_id), messages[:WRITTEN])
        connection = await asyncpg.connect(self._url)
        await connection.execute(MULTIPLY, session_id, max(1, len(messages) // WRITTEN))
        await connection.close()

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Append the events of a turn, a call for each."""
        for each in turn:
            await self._service.append_event(session, event(each))

    async def load(self, session_id: str) -> int:
        """Read the session with all its events."""
        return len((await self.session(session_id)).events)

    async def fork(self, session_id: str, at: int) -> None:
        """Read the session, and append its first events to another one."""
        events = (await self.session(session_id)).events[:at]
        fork = await self.session(str(uuid4()))
        for each in events:
            await self._service.append_event(fork, each)

    async def close(self) -> None:
        """Close the service."""
        await self._service.close()


def event(given: Json) -> Event:
    """Return a message as an event."""
    role = "model" if given["role"] == "assistant" else "user"
    parts = [_result(given)] if given["role"] == "tool" else [types.Part(text=given["content"])]
    parts += [_call(each) for each in given.get("tool_calls", ())]
    content = types.Content(role=role, parts=parts)
    return Event(author=role, invocation_id="invocation", content=content)


def _result(given: Json) -> types.Part:
    answer = {"result": given["content"]}
    named = {"id": given["tool_call_id"], "name": TOOL}
    return types.Part(function_response=types.FunctionResponse(response=answer, **named))


def _call(given: Json) -> types.Part:
    arguments = json.loads(given["function"]["arguments"])
    named = {"id": given["id"], "name": given["function"]["name"]}
    return types.Part(function_call=types.FunctionCall(args=arguments, **named))
