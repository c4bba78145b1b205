"""Every case of an ancestor's log and check, through the API, on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import table
from tests.cases.seed_driver import SeedRun
from tests.contract.calls import Calls
from tests.served import Served

RUNS = table.seed_runs()


def _name(run: tuple[dict[str, Any], dict[str, Any]]) -> str:
    case, options = run
    return "-".join(filter(None, (case["id"], options["name"])))


@pytest.mark.parametrize(("case", "options"), RUNS, ids=map(_name, RUNS))
def test_case_gives_what_the_table_says(
    case: dict[str, Any], options: dict[str, Any], log: Calls, served: Served
) -> None:
    run = SeedRun(log, served.channel, options["options"])
    run.run(case["ops"])
    for index, stated in enumerate(table.expected_results(case, options)):
        assert _narrowed(run.results[index], stated) == stated, f"op {index}"
    final = run.final()
    for key, stated in table.expected_final(case, options).items():
        assert final[key] == stated, key


def _narrowed(told: Any, stated: Any) -> Any:
    """Return of what was told the keys that are stated."""
    if isinstance(told, dict) and isinstance(stated, dict):
        return {key: _narrowed(told.get(key), item) for key, item in stated.items()}
    return told


def test_every_case_not_adopted_as_it_stands_is_in_the_table() -> None:
    unsaid = {c["id"] for c in table.seed_cases() if c["adopt"] != "as-is"}
    assert unsaid <= table.deviations().keys()


def test_the_table_names_only_cases_there_are_and_says_why() -> None:
    cases = [
        *(*table.seed_cases(), *table.field_cases()),
        *(*table.recovery_cases(), *table.attachment_cases(), *table.told_cases()),
    ]
    known = {case["id"] for case in cases}
    assert table.deviations().keys() <= known
    for deviation in table.deviations().values():
        assert deviation["says"]
        assert deviation["does"]
        assert deviation["section"]


@pytest.mark.parametrize("case", table.told_cases(), ids=lambda case: str(case["id"]))
def test_a_case_with_a_test_of_its_own_names_one_there_is(case: dict[str, Any]) -> None:
    if case["test"] is None:
        assert case["id"] in table.deviations()
        return
    path, _, name = case["test"].partition("::")
    assert case["id"].lower() in _ids_of(name)
    assert f"def {name}(" in (table.HERE.parents[1] / path).read_text()


def _ids_of(name: str) -> set[str]:
    """Return the ids that a test's name tells, a range of them whole."""
    words = name.split("_")
    ids = {word for word in words if word[1:].isdecimal()}
    for first, to, last in zip(words, words[1:], words[2:], strict=False):
        if to == "to":
            ids |= {f"{first[0]}{n:03}" for n in range(int(first[1:]), int(last[1:]) + 1)}
    return ids
