"""Unary calls at a rate of their own, however long the answers take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import uvloop
from foldlog._grpc import aio

from bench.crew import Gate, Stopwatch, Tally
from bench.sources import Source
from bench.tasks.calls import warm_up


@dataclass(frozen=True, slots=True)
class Paced:
    """So many calls per second, of the sources in turn.

    A latency counts from when the call was due, so that a server which falls behind is not spared.
    """

    address: str
    method: str
    sources: Sequence[Source]
    seconds: float
    per_s: float

    def __call__(self, gate: Gate) -> Tally:
        return uvloop.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        async with aio.insecure_channel(self.address) as channel:
            call: Any = channel.unary_unary(self.method)
            sources = [iter(each) for each in self.sources]
            await warm_up(call, sources)
            gate()
            return await self._work(call, cycle(sources))

    async def _work(self, call: Any, sources: Iterator[Iterator[bytes]]) -> Tally:
        watch, under_way = Stopwatch(self.seconds), set[asyncio.Task[None]]()
        due = time.perf_counter()

        async def one(request: bytes, due: float) -> None:
            await call(request)
            watch.took(due)

        while watch.is_running():
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            made = asyncio.create_task(one(next(next(sources)), due))
            under_way.add(made)
            made.add_done_callback(under_way.discard)
            due += 1 / self.per_s
        await asyncio.gather(*under_way)
        return watch.stop()
