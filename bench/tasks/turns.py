"""Turns through Foldlog's own client library, as a worker in Python appends them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Final

import foldlog

from bench import workload
from bench.crew import Gate, Stopwatch, Tally
from bench.encoding import appendable

AHEAD: Final = 100


@dataclass(frozen=True, slots=True)
class ClientTurns:
    """Turns of four messages, a call each, to one session."""

    address: str
    session_id: str
    seed: int
    seconds: float

    def __call__(self, gate: Gate) -> Tally:
        turns = [
            [appendable(each) for each in turn]
            for turn in islice(workload.turns(self.seed + AHEAD), AHEAD)
        ]
        with foldlog.Client(self.address) as client:
            session = client.session(self.session_id)
            session.append(*turns[-1])
            gate()
            watch = Stopwatch(self.seconds)
            while watch.is_running():
                turn, started = turns[watch.tally.operations % AHEAD], time.perf_counter()
                session.append(*turn)
                watch.took(started, len(turn))
            return watch.stop()
