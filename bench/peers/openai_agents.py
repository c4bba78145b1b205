"""OpenAI Agents: SQLAlchemySession on asyncpg, the set-up for PostgreSQL in its documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from agents.extensions.memory import SQLAlchemySession
from sqlalchemy.ext.asyncio import create_async_engine

from bench.workload import Json

BATCH: Final = 500


class OpenAIAgents:
    """Items are stored as they are; a fork is what a user writes, since there is none."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("postgresql://", "postgresql+asyncpg://")

    async def prepare(self) -> None:
        """Make the tables, which a session does when it is first written to."""
        await self.connect()
        session = SQLAlchemySession(str(uuid4()), engine=self._engine, create_tables=True)
        await session.add_items([{"role": "user", "content": "first"}])
        await self.close()

    async def connect(self) -> None:
        """Make the engine."""
        self._engine = create_async_engine(self._url)

    async def session(self, session_id: str) -> Any:
        """Return the session."""
        return SQLAlchemySession(session_id, engine=self._engine)

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Add items in batches."""
        session = await self.session(session_id)
        for start in range(0, len(messages), BATCH):
            await session.add_items(list(messages[start : start + BATCH]))

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Add the items of a turn, in one call."""
        await session.add_items(list(turn))

    async def load(self, session_id: str) -> int:
        """Read all items."""
        return len(await (await self.session(session_id)).get_items())

    async def fork(self, session_id: str, at: int) -> None:
        """Read all items, and add the first ones to another session."""
        items = await (await self.session(session_id)).get_items()
        await (await self.session(str(uuid4()))).add_items(items[:at])

    async def close(self) -> None:
        """Close the engine."""
        await self._engine.dispose()
