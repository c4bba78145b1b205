"""What a run leaves behind: a report, the same for programs, and plots."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench import report
from bench.experiments.peers import PYTHON, ROOT
from bench.goals import Outcome, Verdict
from bench.samples import Spread

SCRATCH: Final = ROOT / "build" / "bench"
REPORT: Final = ROOT / "bench" / "RESULTS.md"
PLOTS: Final = ROOT / "docs" / "performance"


class Results:
    """Keeps what was measured so far in a folder of its own, and publishes a whole run."""

    def __init__(self, machine: Mapping[str, str], folder: Path = SCRATCH) -> None:
        self._machine = machine
        self._folder = folder
        self._started = time.monotonic()
        self.text = ""

    def keep(self, outcomes: Sequence[Outcome]) -> None:
        """Write the report and the figures so far."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.text = report.written(outcomes, self._machine, time.monotonic() - self._started)
        (self._folder / "RESULTS.md").write_text(self.text, encoding="utf-8")
        experiments = {each.experiment.name: _experiment(each) for each in outcomes}
        found = {"machine": dict(self._machine), "experiments": experiments}
        data = self._folder / "results.json"
        data.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    def publish(self) -> None:
        """Put report and plots where readers look."""
        shutil.copyfile(self._folder / "RESULTS.md", REPORT)
        command = [str(PYTHON), "-m", "bench.plots", str(self._folder / "results.json"), str(PLOTS)]
        subprocess.run(command, cwd=ROOT, check=True)


def _experiment(outcome: Outcome) -> dict[str, Any]:
    return {
        "title": outcome.experiment.title,
        "rounds": len(outcome.rounds),
        "missing": outcome.missing,
        "goals": [_goal(each) for each in outcome.verdicts],
        "figures": {
            case: {name: _spread(spread) for name, spread in figures.items()}
            for case, figures in outcome.figures.items()
        },
    }


def _goal(verdict: Verdict) -> dict[str, Any]:
    goal = verdict.goal
    return {
        "what": goal.what,
        "against": goal.against,
        "least": goal.least,
        "most": goal.most,
        "measured": verdict.measured and _spread(verdict.measured),
        "is_met": verdict.is_met,
    }


def _spread(spread: Spread) -> dict[str, float]:
    return {"median": spread.median, "least": spread.least, "most": spread.most}
