"""Latency of appends while the server has half of what it can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from bench.crew import Task
from bench.experiments.appending import APPEND, SESSIONS
from bench.goals import Case, Experiment, Goal
from bench.ground import Ground
from bench.samples import Load, Sample
from bench.sessions import created
from bench.sources import Appends
from bench.tasks.calls import Calls
from bench.tasks.paced import Paced

TOP_S: Final = 1.0
PACED_S: Final = 4.0


def half(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Appends at half of the rate that was reached just before."""
    foldlog = ground.foldlog
    ids = created(foldlog, SESSIONS)
    sources = [Appends([each], seed=seed) for seed, each in enumerate(ids)]

    def top() -> Sequence[Task]:
        return [Calls(foldlog.address, APPEND, sources, TOP_S)]

    def at_half() -> Sample:
        per_s = Load(ground.crew, top)()["per_s"] / 2
        paced = Paced(foldlog.address, APPEND, sources, PACED_S, per_s)
        return Load(ground.crew, lambda: [paced], ground.clocks(foldlog))()

    return {"half of the top rate": at_half}


EXPERIMENTS: Final = (
    Experiment(
        "p99",
        "appends at half of the top rate, 16 sessions",
        half,
        (
            Goal(
                "p99 of an append at half of the top rate",
                "its p50",
                lambda each: (
                    each["half of the top rate"]["p99_ms"] / each["half of the top rate"]["p50_ms"]
                ),
                most=5.0,
            ),
        ),
        rounds=5,
    ),
)
