"""An ancestor's cases of recovery, trims and forks in open turns, on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import table
from tests.cases.recovery_driver import RecoveryRun
from tests.contract.calls import Calls

CASES = table.recovery_cases()
GENERATION = "replace_generation"  # how many replaces there were is told by the events


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_gives_what_the_table_says(case: dict[str, Any], log: Calls) -> None:
    run = RecoveryRun(log)
    run.run(case["ops"])
    deviation = table.deviations().get(case["id"], {})
    for index, stated in enumerate(case["expect"]["results"]):
        assert run.results[index] == deviation.get("results", {}).get(str(index), stated), index
    final = run.final()
    for key, stated in case["expect"]["final"].items():
        if key != GENERATION:
            assert final[key] == stated, key
