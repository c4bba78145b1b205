"""Several server processes on one PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from bench.crew import Task
from bench.experiments.appending import APPEND, SESSIONS
from bench.goals import Case, Experiment, Goal, Ratio
from bench.ground import Ground
from bench.processes import cpu_s
from bench.samples import Load
from bench.sessions import created
from bench.sources import Appends
from bench.tasks.calls import Calls
from tests.served import Served

COUNTS: Final = (1, 2, 4)
SECONDS: Final = 2.0


def beside(ground: Ground, servers: Sequence[Served]) -> Case:
    """Return appends of 16 sessions, each of which keeps to one of the servers."""
    share = SESSIONS // len(servers)
    sources = [[Appends([each]) for each in created(served, share)] for served in servers]

    def tasks() -> Sequence[Task]:
        return [
            Calls(served.address, APPEND, own, SECONDS)
            for served, own in zip(servers, sources, strict=True)
        ]

    def servers_cpu_s() -> float:
        return sum(cpu_s(each.process.pid) for each in servers)

    clocks = {"server_us": servers_cpu_s, "database_us": ground.database_cpu_s}
    return Load(ground.crew, tasks, clocks)


def name_of(count: int) -> str:
    """Return what a number of processes is called."""
    return f"{count} process" if count == 1 else f"{count} processes"


def several(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """One, two and four processes on one database."""
    url = ground.migrated()
    servers = [ground.serve(url=url, closed_by=stack) for _ in range(max(COUNTS))]
    return {name_of(count): beside(ground, servers[:count]) for count in COUNTS}


def cost(count: int) -> Ratio:
    """Return how the CPU of servers and database per append compares with that of one process."""

    def spent(figures: Mapping[str, float]) -> float:
        return figures["server_us"] + figures["database_us"]

    return lambda each: spent(each[name_of(count)]) / spent(each[name_of(1)])


EXPERIMENTS: Final = (
    Experiment(
        "processes",
        "one durable append per call, 16 sessions, several server processes",
        several,
        tuple(
            Goal(
                f"CPU per append of servers and database, {name_of(count)} on one PostgreSQL",
                "one process",
                cost(count),
                most=1.15,
            )
            for count in COUNTS[1:]
        ),
        rounds=5,
    ),
)
