"""The results for programs: a file that the plots are drawn from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.goals import Outcome, Verdict
from bench.samples import Spread


def write(outcomes: Sequence[Outcome], machine: Mapping[str, str], place: Path) -> None:
    """Write what was measured as JSON."""
    found = {
        "machine": dict(machine),
        "experiments": {each.experiment.name: _experiment(each) for each in outcomes},
    }
    place.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


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
