"""Faults that users of other systems met, through the API, on every backend."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cases import table
from tests.cases.attachment_driver import attachment_run
from tests.cases.field_driver import FieldRun
from tests.cases.racing_driver import RacingRun
from tests.cases.watching_driver import WatchingRun
from tests.served import Served

HERE = Path(__file__).parent
CASES = table.field_cases()
CLOCK_CASES = {"tim-04"}
ATTACHMENTS = "attachments"
WATCHES = "subscribe"
RACES = {"concurrency", "retry-idempotency", "crash-durability"}


@pytest.fixture
def run(
    case: dict[str, Any], backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> FieldRun:
    """A run of the case; one that reaches below the API has a server of its own."""
    offset = tmp_path / "offset"
    if case["id"] in CLOCK_CASES:
        shim = tmp_path / "shim"
        shim.mkdir()
        shutil.copy(HERE / "shifted_clock.py", shim / "sitecustomize.py")
        serve: Callable[..., Served] = request.getfixturevalue("serve")
        served = serve(backend, PYTHONPATH=str(shim), CLOCK_OFFSET_FILE=str(offset))
    elif case["theme"] == ATTACHMENTS:
        serve = request.getfixturevalue("serve")
        return attachment_run(serve, backend, tmp_path)
    else:
        served = request.getfixturevalue("served")
    restart = served.restart if backend != "sqlite-memory" else None
    return _kind(case["theme"])(served, restart, lambda ms: offset.write_text(str(ms)))


def _kind(theme: str) -> type[FieldRun]:
    if theme == WATCHES:
        return WatchingRun
    return RacingRun if theme in RACES else FieldRun


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_ends_as_it_should(case: dict[str, Any], run: FieldRun) -> None:
    run.run(case["ops"])
    expect = table.field_expectation(case)
    for index, told in run.results.items():
        _assert_result(index, told, expect)
    surfaces, next_seqs = run.surfaces(), run.next_seqs()
    for alias, stated in expect.surface_seqs.items():
        assert surfaces[alias] == stated, alias
    for alias, next_seq in expect.next_seqs.items():
        assert next_seqs[alias] == next_seq, alias


def _assert_result(index: int, told: dict[str, Any], expect: table.FieldExpectation) -> None:
    where = f"op {index}: {told}"
    if index in expect.errors:
        assert told.get("code") in expect.errors[index], where
    if index in expect.checks:
        _assert_check(told, expect.checks[index], where)
    stated = expect.results.get(index)
    if index in expect.one_of:
        assert any(_narrowed(told, each) == each for each in expect.one_of[index]), where
    elif stated is not None:
        assert _narrowed(told, stated) == stated, where
    elif index not in expect.errors:
        assert "refused" not in told, where


def _assert_check(told: dict[str, Any], stated: dict[str, Any], where: str) -> None:
    assert told["result"] == stated["result"], where
    if "kind" in stated:
        assert told["kind"] in stated["kind"], where
    for key in ("index", "tool_call_id"):
        if key in stated:
            assert told[key] == stated[key], where


def _narrowed(told: Any, stated: Any) -> Any:
    if isinstance(told, dict) and isinstance(stated, dict):
        return {key: _narrowed(told.get(key), item) for key, item in stated.items()}
    return told


def test_every_case_that_leaves_a_choice_is_decided() -> None:
    open_cases = {case["id"] for case in CASES if "accept" in case["expect"]}
    assert open_cases <= table.decisions().keys()
    assert table.decisions().keys() <= {case["id"] for case in CASES}
