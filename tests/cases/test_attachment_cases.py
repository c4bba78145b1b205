"""An ancestor's cases of attachments; those that decode images are told in the deviations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import table
from tests.cases.attachment_driver import ImageRun
from tests.contract.calls import Calls
from tests.served import Served


def _is_ours(case: dict[str, Any]) -> bool:
    """Tell whether the case speaks of what this service does: it has results here."""
    deviation = table.deviations().get(case["id"])
    return deviation is None or "results" in deviation


CASES = [case for case in table.attachment_cases() if _is_ours(case)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_gives_what_the_table_says(
    case: dict[str, Any], serve: Callable[..., Served], backend: str, tmp_path: Path
) -> None:
    names = {"FOLDLOG_OBJECT_DIRECTORY": str(tmp_path), "FOLDLOG_OBJECT_INLINE_BYTES": "0"}
    run = ImageRun(Calls.create(serve(backend, **names).stub), tmp_path)
    told = run.run(case["ops"])
    deviation = table.deviations().get(case["id"], {})
    stated = deviation.get("results", {}).get("0", case["expect"]["results"][0])
    assert {key: told.get(key) for key in stated} == stated


def test_the_cases_that_are_ours_are_named() -> None:
    ours = {case["id"] for case in CASES}
    assert ours == {"X001", "X002", "X003", "X004", "X008", "X019", "X021"}
