"""Foldlog, but a read takes the head that this process has for the newest there is."""

from __future__ import annotations

from foldlog.application.domain import Session
from foldlog.application.lane import Lane

from tests.faults.unsafe.serving import serve_with


async def refresh(self: Lane, _min_next_seq: int | None = None) -> Session:
    """Return the head without a look at the store."""
    await self.opened()
    return self.head


if __name__ == "__main__":
    serve_with(Lane, "refresh", refresh)
