"""The command: `python -m bench`, or `python -m bench --quick`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench import machine, report, results
from bench.experiments import ALL
from bench.experiments.peers import PYTHON
from bench.goals import Experiment, Missing, Outcome, measured
from bench.ground import Ground

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "bench" / "RESULTS.md"
PLOTS: Final = ROOT / "docs" / "performance"
SCRATCH: Final = ROOT / "build" / "bench"


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the appends alone, under 3 minutes")
    parser.add_argument("--only", metavar="NAME,...", default="", help="these experiments alone")
    parser.add_argument("--rounds", type=int, help="rounds of each experiment")
    parser.add_argument("--list", action="store_true", help="name the experiments and end")
    return parser.parse_args()


def chosen(only: str, quick: bool) -> Sequence[Experiment]:
    """Return the experiments that are asked for. Exits if there is none of a name."""
    if not only:
        return [each for each in ALL if each.is_quick or not quick]
    names = only.split(",")
    if unknown := set(names) - {each.name for each in ALL}:
        sys.exit(f"no such experiment: {', '.join(sorted(unknown))}")
    return [each for each in ALL if each.name in names]


def run(ground: Ground, experiment: Experiment, rounds: int | None) -> Outcome:
    """Measure an experiment, round after round."""
    outcome, started = Outcome(experiment), time.monotonic()
    with ExitStack() as stack:
        opened = experiment.open(ground, stack)
        cases = {name: each for name, each in opened.items() if not isinstance(each, Missing)}
        outcome.missing = {
            name: each.why for name, each in opened.items() if isinstance(each, Missing)
        }
        for number in range(rounds or experiment.rounds):
            outcome.rounds.append(measured(cases, number))
            print(".", end="", flush=True, file=sys.stderr)
    outcome.seconds = time.monotonic() - started
    return outcome


def main() -> None:
    """Measure, say how it goes, and write what came of it."""
    asked = arguments()
    if asked.list:
        print(*(f"{each.name:16} {each.title}" for each in ALL), sep="\n")
        return
    experiments = chosen(asked.only, asked.quick)
    started, outcomes = time.monotonic(), []
    with Ground() as ground:
        about = machine.facts(ground.postgres.url(), ground.folder)
        for number, each in enumerate(experiments, 1):
            label = f"[{number}/{len(experiments)}] {each.title} "
            print(label, end="", flush=True, file=sys.stderr)
            outcomes.append(run(ground, each, asked.rounds))
            print(f" {outcomes[-1].seconds:.0f} s", file=sys.stderr)
        text = report.written(outcomes, about, time.monotonic() - started)
    keep(text, outcomes, about, is_whole=not (asked.only or asked.quick or asked.rounds))
    print(text)


def keep(
    text: str, outcomes: Sequence[Outcome], about: Mapping[str, str], *, is_whole: bool
) -> None:
    """Write the report and the plots: of a whole run into the documentation, else aside."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    data = SCRATCH / "results.json"
    results.write(outcomes, about, data)
    (RESULTS if is_whole else SCRATCH / "results.md").write_text(text, encoding="utf-8")
    if PYTHON.exists():
        folder = PLOTS if is_whole else SCRATCH
        subprocess.run([PYTHON, "-m", "bench.plots", data, folder], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
