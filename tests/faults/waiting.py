"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

DEADLINE_S: Final = 120.0


async def until(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Return once the condition holds. Raises TimeoutError if it does not in time."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {deadline_s} s")
        await asyncio.sleep(0.005)
