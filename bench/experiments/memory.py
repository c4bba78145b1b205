"""The memory of a server that has many sessions open."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from foldlog.v1.service_pb2 import GetMessagesRequest

from bench.goals import Case, Experiment, Goal
from bench.ground import Ground
from bench.processes import resident_bytes
from bench.samples import Sample
from bench.sessions import grown, read_bytes

# A quarter of 10,000 sessions and of the memory that is set for them: the rest is time alone.
SESSIONS: Final = 2_500
LENGTH: Final = 100
MIB: Final = 2**20
FOLDS: Final = 64 * MIB
BODIES: Final = 32 * MIB
CACHE_IDLE_S: Final = 20.0  # longer than it takes to fill the memory that is set
IDLE_S: Final = 2 * CACHE_IDLE_S + 5


def opened(ground: Ground) -> Sample:
    """Write and read many sessions; return what the server grew by, and what it kept."""
    url = ground.migrated()
    bounds = {
        "FOLDLOG_FOLD_CACHE_BYTES": str(FOLDS),
        "FOLDLOG_BODY_CACHE_BYTES": str(BODIES),
        "FOLDLOG_CACHE_IDLE_S": str(CACHE_IDLE_S),
    }
    with ExitStack() as stack:
        served = ground.serve(bounds, url, closed_by=stack)
        read_bytes(served, GetMessagesRequest(session_id=grown(served, LENGTH)))
        pid = served.process.pid
        before = most = resident_bytes(pid)
        for seed in range(SESSIONS):
            session_id = grown(served, LENGTH, seed % 16, batch=LENGTH)
            read_bytes(served, GetMessagesRequest(session_id=session_id))
            most = max(most, resident_bytes(pid))
        time.sleep(IDLE_S)
        kept = resident_bytes(pid) - before
    return {"peak_bytes": most - before, "idle_bytes": kept, "set_bytes": FOLDS + BODIES}


def crowd(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Many sessions, of which fewer fit than are opened."""
    return {"foldlog": lambda: opened(ground)}


EXPERIMENTS: Final = (
    Experiment(
        "memory",
        f"memory of a server with {SESSIONS:,} open sessions of {LENGTH} messages",
        crowd,
        (
            Goal(
                "memory for open sessions at its height",
                "fold_cache_bytes and body_cache_bytes together",
                lambda each: each["foldlog"]["peak_bytes"] / each["foldlog"]["set_bytes"],
                most=1.2,
            ),
            Goal(
                "memory for open sessions when idle",
                "its height",
                lambda each: each["foldlog"]["idle_bytes"] / each["foldlog"]["peak_bytes"],
                most=0.5,
            ),
        ),
        rounds=1,
        notes=("The goal is stated for 10,000 sessions; a quarter of them, and of the bounds.",),
    ),
)
