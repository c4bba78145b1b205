"""Draws the results: `python -m bench.plots RESULTS.json FOLDER`, in the peers' environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

# Readable on white and on black: the background is transparent.
TEXT: Final = "#808080"
OURS: Final = "#3b82c4"
THEIRS: Final = "#9aa5b1"
MET: Final = "#2e9e6b"
UNMET: Final = "#d97706"
STYLE: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "foldlog",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.edgecolor": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.transparent": True,
}
WIDTH: Final = 7.5
ROW: Final = 0.28
MARGIN: Final = 1.1
COSTS: Final = {"client_us": "clients", "server_us": "server", "database_us": "PostgreSQL"}
COST_COLOURS: Final = (THEIRS, OURS, MET)

Results = Mapping[str, Any]


def bars(
    rows: Mapping[str, float],
    label: str,
    colours: Sequence[str],
    place: Path,
    *,
    is_log: bool,
    base: float = 0.0,
) -> None:
    """Draw a bar per row from the base on, the first on top, each with its number."""
    figure, axes = pyplot.subplots(figsize=(WIDTH, MARGIN + ROW * len(rows)))
    widths = [value - base for value in rows.values()]
    drawn = axes.barh(list(rows), widths, left=base, color=colours)
    axes.axvline(base, color=TEXT, linewidth=1)
    axes.bar_label(drawn, [f"{value:,.3g}" for value in rows.values()], padding=3)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.margins(x=0.15)
    if is_log:
        axes.set_xscale("log")
    save(figure, place)


def save(figure: Any, place: Path) -> None:
    """Write a figure, the same bytes for the same numbers."""
    figure.tight_layout()
    figure.savefig(place, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)


def medians(experiment: Results, figure: str) -> dict[str, float]:
    """Return a figure of each case that has it."""
    cases = experiment["figures"].items()
    return {name: found[figure]["median"] for name, found in cases if figure in found}


def cases(figure: str, label: str, *, is_log: bool) -> Callable[[Results, Path], None]:
    """Return what draws a figure of an experiment's cases, ours in another colour."""

    def draw(experiment: Results, place: Path) -> None:
        rows = medians(experiment, figure)
        colours = [OURS if name.startswith("foldlog") else THEIRS for name in rows]
        bars(rows, label, colours, place, is_log=is_log)

    return draw


def goals(experiments: Results, place: Path) -> None:
    """Draw how far each goal is reached: 1 is the goal, more is better."""
    found = [
        (f"{name}: {goal['against'] or goal['what'].rpartition(': ')[2]}", goal)
        for name, experiment in experiments.items()
        for goal in experiment["goals"]
        if goal["measured"] and goal["measured"]["median"] and (goal["least"] or goal["most"])
    ]
    rows = {label[:70]: reached(goal) for label, goal in found}
    colours = [MET if value >= 1 else UNMET for value in rows.values()]
    bars(rows, "how far the goal is reached (1: met)", colours, place, is_log=True, base=1.0)


def reached(goal: Results) -> float:
    """Return by what factor a goal is met, below 1 if it is not."""
    median = float(goal["measured"]["median"])
    return median / goal["least"] if goal["least"] else float(goal["most"]) / median


def costs(experiments: Results, place: Path) -> None:
    """Draw what the CPU time of an append goes to."""
    found = {
        f"{name}: {case}": costs_of(figures)
        for name in ("unary-16", "stream-32", "workers-16", "turns-4")
        if name in experiments
        for case, figures in experiments[name]["figures"].items()
    }
    figure, axes = pyplot.subplots(figsize=(WIDTH, MARGIN + ROW * len(found)))
    start = [0.0] * len(found)
    for at, label in enumerate(COSTS.values()):
        widths = [each[at] for each in found.values()]
        axes.barh(list(found), widths, left=start, color=COST_COLOURS[at], label=label)
        start = [a + b for a, b in zip(start, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("us of CPU per message")
    axes.legend(frameon=False, ncols=len(COSTS), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    save(figure, place)


def costs_of(figures: Results) -> list[float]:
    """Return what a message costs each kind of process."""
    messages = figures["messages_per_s"]["median"] / figures["per_s"]["median"]
    return [figures.get(each, {}).get("median", 0.0) / messages for each in COSTS]


DRAWN: Final = {
    "peers-turns": cases("messages_per_s", "messages per second", is_log=True),
    "peers-load": cases("seconds", "seconds to load 10,000 messages, decoded", is_log=True),
    "peers-fork": cases("seconds", "seconds to fork at the middle of 10,000", is_log=True),
    "flat": cases("p50_ms", "ms, median of an append", is_log=False),
}


def main() -> None:
    """Draw whatever the results have."""
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    experiments = json.loads(source.read_text())["experiments"]
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        goals(experiments, folder / "goals.svg")
        costs(experiments, folder / "costs.svg")
        for name, draw in DRAWN.items():
            if name in experiments:
                draw(experiments[name], folder / f"{name}.svg")


if __name__ == "__main__":
    main()
