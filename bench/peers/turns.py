"""What a worker does with another framework's store: turns, appended to a session of its own."""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from bench import workload
from bench.crew import Gate, Stopwatch, Tally
from bench.peers.store import Store

AHEAD: Final = 100


def session_of(seed: int) -> str:
    """Return the id of a worker's session."""
    return str(uuid5(NAMESPACE_OID, str(seed)))


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns of four messages, one after the other."""

    module: str
    kind: str
    url: str
    seed: int
    seconds: float

    def __call__(self, gate: Gate) -> Tally:
        warnings.simplefilter("ignore")
        logging.disable(logging.ERROR)
        return asyncio.run(self._run(gate))

    async def _run(self, gate: Gate) -> Tally:
        store: Store = getattr(import_module(self.module), self.kind)(self.url)
        await store.connect()
        session = await store.session(session_of(self.seed))
        turns = list(islice(workload.turns(self.seed + AHEAD), AHEAD))
        await store.append(session, turns[-1])
        gate()
        watch = Stopwatch(self.seconds)
        while watch.is_running():
            turn, started = turns[watch.tally.operations % AHEAD], time.perf_counter()
            await store.append(session, turn)
            watch.took(started, len(turn))
        tally = watch.stop()
        await store.close()
        return tally
