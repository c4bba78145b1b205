"""What is measured: each module one part of the goals."""

from __future__ import annotations

from typing import Final

from bench.experiments import (
    appending,
    checking,
    following,
    in_process,
    latency,
    lengths,
    limits,
    memory,
    peers,
    reading,
    several,
    starting,
    storing,
)

ALL: Final = (
    *limits.EXPERIMENTS,
    *appending.EXPERIMENTS,
    *lengths.EXPERIMENTS,
    *reading.EXPERIMENTS,
    *checking.EXPERIMENTS,
    *storing.EXPERIMENTS,
    *latency.EXPERIMENTS,
    *in_process.EXPERIMENTS,
    *following.EXPERIMENTS,
    *several.EXPERIMENTS,
    *starting.EXPERIMENTS,
    *memory.EXPERIMENTS,
    *peers.EXPERIMENTS,
)
