"""Unary calls of many sessions, from one process, each session's one after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import uvloop
from foldlog._grpc import aio

from bench import wire
from bench.crew import Gate, Stopwatch, Tally
from bench.tasks.inserts import Insert, rows

WARM_UP = 8


@dataclass(frozen=True, slots=True)
class Calls:
    """Appends, or whatever the method does with the same bytes, of messages per call.

    With `insert_url` each call is followed by a row that is written by hand.
    """

    address: str
    method: str
    session_ids: Sequence[str]
    seconds: float
    size: int = 1
    insert_url: str = ""

    def __call__(self, gate: Gate) -> Tally:
        return uvloop.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        async with aio.insecure_channel(self.address) as channel:
            call: Any = channel.unary_unary(self.method)
            requests = [
                wire.appends(each, self.size, seed) for seed, each in enumerate(self.session_ids)
            ]
            for each in requests:
                for _ in range(WARM_UP):
                    await call(next(each))
            with Insert.connected(self.insert_url) if self.insert_url else nullcontext() as insert:
                gate()
                watch = Stopwatch(self.seconds)
                await asyncio.gather(
                    *(self._session(call, each, watch, insert) for each in requests)
                )
                return watch.stop()

    async def _session(
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
