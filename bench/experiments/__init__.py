"""What is measured: each module one part of the goals."""

from __future__ import annotations

from typing import Final

from bench.experiments import appending, checking, latency, lengths, reading, storing

ALL: Final = (
    *appending.EXPERIMENTS,
    *lengths.EXPERIMENTS,
    *reading.EXPERIMENTS,
    *checking.EXPERIMENTS,
    *storing.EXPERIMENTS,
    *latency.EXPERIMENTS,
)
