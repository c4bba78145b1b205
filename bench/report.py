"""The report: what was asked, what was measured, and what it was measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bench.goals import Outcome, Verdict
from bench.samples import UNITS, Spread

HEAD: Final = """\
# Results

Made by `make bench`; [what is measured, and how](../docs/performance.md).
Each figure is the median of interleaved rounds, with the least and the most beside it. A ratio is
found within each round. Only ratios count: absolute figures are those of the machine below, whose
cores clients, servers and the database share. CPU time is user and system time per operation, of
all processes of a kind.
"""


def written(
    outcomes: Sequence[Outcome], machine: Mapping[str, str], seconds: float, title: str = HEAD
) -> str:
    """Return the whole report in Markdown."""
    verdicts = [each for outcome in outcomes for each in outcome.verdicts]
    met = sum(each.is_met for each in verdicts)
    parts = [
        title,
        "\n".join(f"- {name}: {value}" for name, value in machine.items()),
        f"\n{met} of {len(verdicts)} goals are met. The run took {seconds / 60:.1f} minutes.\n",
        "## Goals\n",
        *goal_table(verdicts),
        *(line for outcome in outcomes for line in detail(outcome)),
    ]
    return "\n".join(parts) + "\n"


def goal_table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the lines of the table of goals."""
    yield "| what | against | goal | measured | spread | met |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in verdicts:
        goal, met = each.goal, "yes" if each.is_met else "**no**"
        yield f"| {goal.what} | {goal.against} | {goal.says} | {_measured(each)} | {met} |"


def _measured(verdict: Verdict) -> str:
    measured = verdict.measured
    if measured is None:
        return "not measured |"
    return f"{number(measured.median)} | {number(measured.least)} to {number(measured.most)}"


def detail(outcome: Outcome) -> Iterator[str]:
    """Yield the lines about an experiment: every figure of every case."""
    yield f"\n## {outcome.experiment.title}\n"
    yield from table_of(outcome.figures)
    rounds = f"{len(outcome.rounds)} rounds, {outcome.seconds:.0f} s."
    yield f"\n`{outcome.experiment.name}`, {rounds}"
    yield from outcome.experiment.notes
    for name, why in outcome.missing.items():
        yield f"\nNot measured: {name}: {why}"


def table_of(figures: Mapping[str, Mapping[str, Spread]]) -> Iterator[str]:
    """Yield the lines of a table of cases and figures."""
    names = [each for each in UNITS if any(each in case for case in figures.values())]
    yield f"| case | {' | '.join(UNITS[each] or each for each in names)} |"
    yield f"| --- |{' --- |' * len(names)}"
    for case, of_case in figures.items():
        yield f"| {case} | {' | '.join(cell(of_case.get(each)) for each in names)} |"


def cell(spread: Spread | None) -> str:
    """Return a figure and its extremes."""
    if spread is None:
        return ""
    if spread.least == spread.most:
        return number(spread.median)
    return f"{number(spread.median)} ({number(spread.least)} to {number(spread.most)})"


def number(value: float) -> str:
    """Return three digits of a number, and all of those before the point."""
    if abs(value) >= 100 or value == 0:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
