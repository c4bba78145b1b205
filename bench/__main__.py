"""The command: `python -m bench`, or `python -m bench --quick`."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import ExitStack

from bench import machine
from bench.experiments import ALL
from bench.goals import Cases, Experiment, Missing, Outcome, measured
from bench.ground import Ground
from bench.results import Results


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
    """Measure an experiment, round after round. One that fails says so in the report."""
    outcome, started = Outcome(experiment), time.monotonic()
    try:
        with ExitStack() as stack:
            measure(experiment.open(ground, stack), outcome, rounds or experiment.rounds)
    except Exception as error:
        # The others, which took minutes, are not to be lost with it.
        traceback.print_exc()
        outcome.missing["all of it"] = f"{type(error).__name__}: {error}".partition("\n")[0]
    outcome.seconds = time.monotonic() - started
    return outcome


def measure(opened: Cases, outcome: Outcome, rounds: int) -> None:
    """Measure the cases that there are, and note why others are not."""
    cases = {name: each for name, each in opened.items() if not isinstance(each, Missing)}
    missing = {name: each.why for name, each in opened.items() if isinstance(each, Missing)}
    outcome.missing.update(missing)
    for number in range(rounds):
        outcome.rounds.append(measured(cases, number))
        print(".", end="", flush=True, file=sys.stderr)


def main() -> None:
    """Measure, say how it goes, and write what came of it."""
    asked = arguments()
    if asked.list:
        print(*(f"{each.name:16} {each.title}" for each in ALL), sep="\n")
        return
    experiments = chosen(asked.only, asked.quick)
    # What is installed is compiled; a source tree is to be as well, whatever this machine prefers.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    outcomes: list[Outcome] = []
    with Ground() as ground:
        results = Results(machine.facts(ground.postgres.url(), ground.folder))
        for number, each in enumerate(experiments, 1):
            label = f"[{number}/{len(experiments)}] {each.title} "
            print(label, end="", flush=True, file=sys.stderr)
            outcomes.append(run(ground, each, asked.rounds))
            print(f" {outcomes[-1].seconds:.0f} s", file=sys.stderr)
            results.keep(outcomes)
    if not (asked.only or asked.quick or asked.rounds):
        results.publish()
    print(results.text)


if __name__ == "__main__":
    main()
