"""What the turns of an event loop cost, told by a task that takes one turn after the other."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass


@dataclass
class Turns:
    """The longest turn that was seen, in seconds of the loop's own thread on a processor."""

    longest_s: float = 0.0


@asynccontextmanager
async def metered() -> AsyncIterator[Turns]:
    """Meter the turns of the running loop."""
    turns = Turns()
    with without_collector():
        meter = asyncio.create_task(_meter(turns))
        await asyncio.sleep(0)  # from here on it is between two of its turns
        try:
            yield turns
            await asyncio.sleep(0)
        finally:
            meter.cancel()


async def _meter(turns: Turns) -> None:
    while True:
        before = time.thread_time()
        await asyncio.sleep(0)
        turns.longest_s = max(turns.longest_s, time.thread_time() - before)


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the collector of cycles out: it runs in whichever thread it comes to."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
