"""Unary calls from one process: of one source in sequence, and of several beside each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

import uvloop
from foldlog._grpc import aio

from bench.crew import Gate, Stopwatch, Tally
from bench.sources import Source
from bench.tasks.inserts import Insert, rows

WARM_UP: Final = 8


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of a method, with so many messages in each.

    With `insert_url` each call is followed by a row that is written by hand.
    """

    address: str
    method: str
    sources: Sequence[Source]
    seconds: float
    size: int = 1
    insert_url: str = ""

    def __call__(self, gate: Gate) -> Tally:
        return uvloop.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        inserting = Insert.connected(self.insert_url) if self.insert_url else nullcontext()
        async with aio.insecure_channel(self.address) as channel:
            call: Any = channel.unary_unary(self.method)
            sources = [iter(each) for each in self.sources]
            await warm_up(call, sources)
            with inserting as insert:
                gate()
                watch = Stopwatch(self.seconds)
                await asyncio.gather(*(self._work(call, each, watch, insert) for each in sources))
                return watch.stop()

    async def _work(
        self, call: Any, requests: Iterator[bytes], watch: Stopwatch, insert: Insert | None
    ) -> None:
        written = rows(0)
        while watch.is_running():
            request = next(requests)
            started = time.perf_counter()
            await call(request)
            if insert is not None:
                insert.one(next(written))
            watch.took(started, self.size)


async def warm_up(call: Any, sources: Sequence[Iterator[bytes]]) -> None:
    """Make a few calls of each source that do not count."""
    for each in sources:
        for _ in range(WARM_UP):
            await call(next(each))
