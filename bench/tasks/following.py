"""Readers that follow what is written: watches of a session, and the feed of all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import uvloop
from foldlog._grpc import aio
from foldlog.internal.v1.raw_pb2 import RawEvent, RawWatchAllEventsResponse
from foldlog.v1.service_pb2 import WatchAllEventsRequest, WatchEventsRequest, WatchEventsResponse

from bench import wire
from bench.crew import Gate, Stopwatch, Tally

NS: Final = 1e9
QUIET_S: Final = 1.5
PER_CONNECTION: Final = 50
OWN_CONNECTION: Final = (("grpc.use_local_subchannel_pool", 1),)


@dataclass(frozen=True, slots=True)
class Watches:
    """So many watches of one session, over as many connections as hold them."""

    address: str
    session_id: str
    count: int
    seconds: float

    def __call__(self, gate: Gate) -> Tally:
        return uvloop.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        async with AsyncExitStack() as stack:
            calls: list[Any] = []
            while len(calls) < self.count:
                connection = aio.insecure_channel(self.address, options=OWN_CONNECTION)
                channel = await stack.enter_async_context(connection)
                opened = min(PER_CONNECTION, self.count - len(calls))
                calls += await asyncio.gather(*(self._open(channel) for _ in range(opened)))
            gate()
            return await self._drained(calls)

    async def _drained(self, calls: Sequence[Any]) -> Tally:
        watch = Stopwatch(self.seconds)
        readers = [asyncio.create_task(_drain(each, watch)) for each in calls]
        await asyncio.sleep(self.seconds)
        tally = watch.stop()
        for each in readers:
            each.cancel()
        return tally

    async def _open(self, channel: aio.Channel) -> Any:
        """Open a watch, and read until it has caught up."""
        asked = WatchEventsRequest(session_id=self.session_id).SerializeToString()
        method: Any = channel.unary_stream(f"{wire.SERVICE}WatchEvents")
        call = method(asked)
        while not WatchEventsResponse.FromString(await call.read()).HasField("caught_up"):
            pass
        return call


async def _drain(call: Any, watch: Stopwatch) -> None:
    while await call.read() is not aio.EOF:
        watch.took(time.perf_counter())


@dataclass(slots=True)
class Seen:
    """What the feed showed of one session."""

    first: int = -1
    last: int = -1
    count: int = 0

    def saw(self, seq: int) -> None:
        """Take an event in."""
        self.first = seq if self.first < 0 else self.first
        self.last = max(self.last, seq)
        self.count += 1

    @property
    def gaps(self) -> int:
        """How many between the first and the last were not shown."""
        return self.last - self.first + 1 - self.count


@dataclass(slots=True)
class Follower:
    """Notes what comes and how long after its time it does."""

    lags_s: list[float] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)

    def take(self, data: bytes) -> bool:
        """Take an answer in, and tell whether it was an event."""
        answer = RawWatchAllEventsResponse.FromString(data)
        if answer.WhichOneof("kind") != "event":
            return False
        self.lags_s.append(time.time() - _time_s(answer.event))
        self.seen.setdefault(answer.session_id, Seen()).saw(answer.event.seq)
        return True


def _time_s(event: RawEvent) -> float:
    return event.time.seconds + event.time.nanos / NS


@dataclass(frozen=True, slots=True)
class Feed:
    """The feed of all sessions, from now on, until nothing comes any more.

    The facts of its tally: how many events were missed, and the last seq of each session.
    """

    address: str
    seconds: float

    def __call__(self, gate: Gate) -> Tally:
        return uvloop.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        async with aio.insecure_channel(self.address) as channel:
            method: Any = channel.unary_stream(f"{wire.SERVICE}WatchAllEvents")
            call = method(WatchAllEventsRequest(from_now=True).SerializeToString())
            await call.read()
            follower = Follower()
            gate()
            watch = Stopwatch(self.seconds)
            await self._follow(call, follower, watch)
            tally = watch.stop()
        tally.latencies_s = follower.lags_s
        tally.operations = tally.messages = len(follower.lags_s)
        tally.facts = {name: each.last for name, each in follower.seen.items()}
        tally.facts["missed"] = sum(each.gaps for each in follower.seen.values())
        return tally

    async def _follow(self, call: Any, follower: Follower, watch: Stopwatch) -> None:
        while True:
            try:
                data = await asyncio.wait_for(call.read(), QUIET_S)
            except TimeoutError:
                if not watch.is_running():
                    return
            else:
                follower.take(data)
