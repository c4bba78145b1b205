"""Goals, what is measured for them, and the rounds in which it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.ground import Ground
from bench.samples import Sample, Spread, spreads

Case = Callable[[], Sample]


@dataclass(frozen=True, slots=True)
class Missing:
    """A case that cannot be measured here, and why."""

    why: str


Cases = Mapping[str, Case | Missing]
Round = Mapping[str, Sample]
Ratio = Callable[[Round], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table: a ratio, found anew in each round, and its bound."""

    what: str
    against: str
    ratio: Ratio
    least: float | None = None
    most: float | None = None
    # What the number is, if it is no ratio.
    unit: str = ""
    # The cases without which there is nothing to compare with.
    needs: Sequence[str] = ()

    @property
    def says(self) -> str:
        """The goal, for people."""
        bound = f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"
        return f"{bound} {self.unit}".strip()

    def is_met(self, value: float) -> bool:
        """Tell whether a ratio is within the bound."""
        if self.least is not None and value < self.least:
            return False
        return self.most is None or value <= self.most


@dataclass(frozen=True, slots=True)
class Experiment:
    """Cases that are measured side by side, round after round, and what is asked of them.

    `open` prepares the cases; what it puts on the stack ends with the experiment. `rounds` says
    how often; `is_quick` that it is part of the short run.
    """

    name: str
    title: str
    open: Callable[[Ground, ExitStack], Cases]
    goals: Sequence[Goal]
    rounds: int = 5
    is_quick: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal and what came of it."""

    goal: Goal
    measured: Spread | None

    @property
    def is_met(self) -> bool:
        """Whether the median is within the bound; what was not measured is not met."""
        return self.measured is not None and self.goal.is_met(self.measured.median)


@dataclass(slots=True)
class Outcome:
    """What an experiment measured."""

    experiment: Experiment
    rounds: list[Round] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def verdicts(self) -> list[Verdict]:
        """What came of each goal."""
        return [
            Verdict(goal, None if self._lacks(goal) else self._spread(goal))
            for goal in self.experiment.goals
        ]

    def _lacks(self, goal: Goal) -> bool:
        without = bool(goal.needs) and all(each in self.missing for each in goal.needs)
        return without or not self.rounds

    def _spread(self, goal: Goal) -> Spread:
        return Spread.of([goal.ratio(each) for each in self.rounds])

    @property
    def figures(self) -> dict[str, dict[str, Spread]]:
        """The figures of each case."""
        names = self.rounds[0] if self.rounds else ()
        return {name: spreads([each[name] for each in self.rounds]) for name in names}


def measured(cases: Mapping[str, Case], number: int) -> Round:
    """Measure every case once, beginning with another one in each round."""
    names = list(cases)
    first = number % len(names)
    taken = {name: cases[name]() for name in names[first:] + names[:first]}
    return {name: taken[name] for name in names}


def quotient(above: str, below: str, figure: str) -> Ratio:
    """Return the ratio of a figure of two cases."""
    return lambda each: each[above][figure] / each[below][figure]
