"""One stream of one session per worker, with so many elements on their way."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import uvloop
from foldlog._grpc import aio

from bench import wire
from bench.crew import Gate, Stopwatch, Tally

WARM_UP = 16


@dataclass(frozen=True, slots=True)
class Stream:
    """Elements of messages each, written and answered in order."""

    address: str
    method: str
    session_id: str
    seed: int
    seconds: float
    size: int = 1
    in_flight: int = 1
    is_echo: bool = False

    def __call__(self, gate: Gate) -> Tally:
        return uvloop.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        async with aio.insecure_channel(self.address) as channel:
            call: Any = channel.stream_stream(self.method)()
            elements = wire.elements(self.session_id, self.size, self.seed)
            for element in islice(elements, WARM_UP):
                await call.write(element)
                self._judge(await call.read())
            gate()
            tally = await self._work(call, elements)
            await call.done_writing()
            return tally

    async def _work(self, call: Any, elements: Iterator[bytes]) -> Tally:
        watch, sent = Stopwatch(self.seconds), deque[float]()

        async def send() -> None:
            element = next(elements)
            sent.append(time.perf_counter())
            await call.write(element)

        for _ in range(self.in_flight):
            await send()
        while sent:
            self._judge(await call.read())
            watch.took(sent.popleft(), self.size)
            if watch.is_running():
                await send()
        return watch.stop()

    def _judge(self, answer: bytes) -> None:
        if not self.is_echo:
            wire.require_appended(answer)
