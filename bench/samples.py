"""What a case measured, and how figures of several rounds are put together."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.crew import Crew, Tally, Task

MICRO: Final = 1e6
MILLI: Final = 1e3
# What a sample may hold, in the order of a report, and the unit of each.
UNITS: Final = {
    "messages_per_s": "messages/s",
    "per_s": "/s",
    "p50_ms": "ms p50",
    "p99_ms": "ms p99",
    "seconds": "s",
    "cpu_s": "s of CPU",
    "client_us": "us of clients",
    "server_us": "us of the server",
    "database_us": "us of PostgreSQL",
    "bytes": "bytes",
    "row_bytes": "bytes of the row",
    "ratio": "ratio",
    "count": "rows",
    "lag_ms": "ms of lag, p99",
    "missed": "missed",
    "peak_bytes": "bytes at the height",
    "idle_bytes": "bytes when idle",
    "set_bytes": "bytes set",
}

Sample = Mapping[str, float]
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of a figure, and its extremes."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Put the values of all rounds together."""
        return cls(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], part: float) -> float:
    """Return the value that this part of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Load:
    """Tasks to be run at once, and whose CPU time is to be counted meanwhile."""

    crew: Crew
    tasks: Callable[[], Sequence[Task]]
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    # What goes on meanwhile, and is not measured.
    beside: Callable[[], Sequence[Task]] = tuple

    def __call__(self) -> Sample:
        """Run the tasks and return what they did and cost."""
        return self.run()[0]

    def run(self) -> tuple[Sample, list[Tally]]:
        """Do the same, and return the tallies of what went on meanwhile as well."""
        tasks = self.tasks()
        with self.crew.ready([*tasks, *self.beside()]) as run:
            before = {name: clock() for name, clock in self.clocks.items()}
            tallies = run()
            used = {name: clock() - before[name] for name, clock in self.clocks.items()}
        return sample(tallies[: len(tasks)], used), tallies[len(tasks) :]


def sample(tallies: Sequence[Tally], used_s: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of workers that ran beside each other; CPU is per operation."""
    operations = sum(each.operations for each in tallies)
    latencies = [each for tally in tallies for each in tally.latencies_s]
    spent = {"client_us": sum(each.cpu_s for each in tallies), **used_s}
    return {
        "messages_per_s": sum(each.messages / each.elapsed_s for each in tallies),
        "per_s": sum(each.operations / each.elapsed_s for each in tallies),
        "p50_ms": percentile(latencies, 0.5) * MILLI,
        "p99_ms": percentile(latencies, 0.99) * MILLI,
        **{name: seconds / operations * MICRO for name, seconds in spent.items()},
    }


def spreads(samples: Sequence[Sample]) -> dict[str, Spread]:
    """Return each figure over all rounds."""
    return {name: Spread.of([each[name] for each in samples]) for name in samples[0]}


def as_json(spread: Spread) -> dict[str, Any]:
    """Return a spread for a file."""
    return {"median": spread.median, "least": spread.least, "most": spread.most}
