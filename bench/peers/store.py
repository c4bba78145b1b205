"""What is asked of a store, in the calls that its documentation gives for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from bench.workload import Json


class Store(Protocol):
    """A store on one database. Messages come in whole turns."""

    async def prepare(self) -> None:
        """Make the tables."""
        ...

    async def connect(self) -> None:
        """Make ready for the rest."""
        ...

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Make a session of these messages, in whatever way is quickest."""
        ...

    async def session(self, session_id: str) -> Any:
        """Return what appends to a session are made with."""
        ...

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Append a turn, in as few durable calls as there are for it."""
        ...

    async def load(self, session_id: str) -> int:
        """Read a session as objects of the framework; return how many messages it has."""
        ...

    async def fork(self, session_id: str, at: int) -> None:
        """Make another session, or branch, of the first messages."""
        ...

    async def close(self) -> None:
        """Let the database go."""
        ...
