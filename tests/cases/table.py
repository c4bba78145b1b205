"""The cases and the table of deviations, read from the files beside this module."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# What the seeds' own errors are here.
REASONS = {
    "surface_op_on_non_surface_event": "INVALID_FIELD",
    "invalid_surface_op": "INVALID_FIELD",
    "unknown_event_type": "INVALID_FIELD",
    "seq_behind_head": "SEQ_BEHIND_HEAD",
}
# Caches are internal, and how many replaces there were is told by the events.
INTERNAL_STATE = {"cache", "cached_fold_equals_fresh_fold", "fold_served", "replace_generation"}


@cache
def load(name: str) -> dict[str, Any]:
    """Return a file's content."""
    content: dict[str, Any] = json.loads((HERE / name).read_text())
    return content


def seed_cases() -> list[dict[str, Any]]:
    """Return the cases taken from an ancestor's behaviour."""
    cases: list[dict[str, Any]] = load("seed_cases.json")["cases"]
    return cases


def field_cases() -> list[dict[str, Any]]:
    """Return the cases taken from faults that users of other systems met."""
    cases: list[dict[str, Any]] = load("field_cases.json")["cases"]
    return cases


def database_cases() -> list[dict[str, Any]]:
    """Return those of them that need a fault of the database, with what this service does."""
    cases: list[dict[str, Any]] = load("database_cases.json")["cases"]
    return cases


def recovery_cases() -> list[dict[str, Any]]:
    """Return the cases of another ancestor that tell of recovery, of trims and of open turns."""
    cases: list[dict[str, Any]] = load("recovery_cases.json")["cases"]
    return cases


def attachment_cases() -> list[dict[str, Any]]:
    """Return the cases of another ancestor that tell of attachments."""
    cases: list[dict[str, Any]] = load("attachment_cases.json")["cases"]
    return cases


def told_cases() -> list[dict[str, Any]]:
    """Return the cases that tests of their own hold: of headers, and of files that importers read.

    Each names its test; none is named where a case speaks of what is the caller's business.
    """
    cases: list[dict[str, Any]] = load("told_cases.json")["cases"]
    return cases


def deviations() -> dict[str, dict[str, Any]]:
    """Return, by case, where this service departs from it."""
    table: dict[str, dict[str, Any]] = load("deviations.json")["deviations"]
    return table


def seed_runs() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return every case with what it is run with: once as it stands, and once per variant."""
    plain: dict[str, Any] = {"name": "", "options": {}}
    return [
        (case, run)
        for case in seed_cases()
        for run in [plain, *deviations().get(case["id"], {}).get("variants", [])]
    ]


def expected_results(case: dict[str, Any], run: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what each op is to give in a run, in the driver's terms."""
    stated = [_translated(each) for each in case["expect"]["results"]]
    for index, instead in _overrides(case, run, "results").items():
        stated[int(index)] = instead
    return [each for each in stated if not each.get("absent")]


def expected_final(case: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Return the state that a run is to end in, by key."""
    stated = case["expect"]["final"] | _overrides(case, run, "final")
    return {key: item for key, item in stated.items() if key not in INTERNAL_STATE}


def _overrides(case: dict[str, Any], run: dict[str, Any], key: str) -> dict[str, Any]:
    if run.get("as_written"):
        return {}
    deviation: dict[str, Any] = deviations().get(case["id"], {}).get(key, {})
    instead: dict[str, Any] = run.get(key, {})
    return deviation | instead


def _translated(stated: dict[str, Any]) -> dict[str, Any]:
    if stated.get("error") == "seq_behind_head":
        seq, next_seq = map(str, stated["detail"])
        return {"refused": "SEQ_BEHIND_HEAD", "facts": {"seq": seq, "next_seq": next_seq}}
    if "error" in stated:
        return {"refused": REASONS.get(stated["error"], stated["error"])}
    if "raised" in stated:
        return {"refused": "INVALID_FIELD"}
    return {key: item for key, item in stated.items() if key != "telemetry"}


@dataclass(frozen=True)
class FieldExpectation:
    """What a field case is to end in, the decisions and deviations included."""

    results: dict[int, dict[str, Any]]
    one_of: dict[int, list[dict[str, Any]]]
    errors: dict[int, list[str]]
    checks: dict[int, dict[str, Any]]
    surface_seqs: dict[str, list[int]]
    next_seqs: dict[str, int]


def decisions() -> dict[str, dict[str, Any]]:
    """Return, by case, which of the outcomes that it accepts is ours."""
    table: dict[str, dict[str, Any]] = load("decisions.json")["decisions"]
    return table


def field_expectation(case: dict[str, Any]) -> FieldExpectation:
    """Return what a field case is to end in."""
    expect = case["expect"]
    decided = decisions().get(case["id"], {})
    deviation = deviations().get(case["id"], {})
    results = decided.get("results", {}) | deviation.get("results", {})
    errors = _by_op(expect.get("errors", {})) | _by_op(expect.get("errors_preferred", {}))
    return FieldExpectation(
        results=_by_op(results),
        one_of=_by_op(decided.get("one_of", {})),
        errors={i: codes for i, codes in errors.items() if not _not_run(results, i)},
        checks=_by_op(expect.get("checks", {})),
        surface_seqs=_ends(expect, decided, deviation, "surface_seqs"),
        next_seqs=_ends(expect, decided, deviation, "next_seq"),
    )


def _not_run(results: dict[str, Any], index: int) -> bool:
    return "not_run" in results.get(str(index), {})


def _by_op(stated: dict[str, Any]) -> dict[int, Any]:
    return {int(index): item for index, item in stated.items()}


def _ends(expect: dict[str, Any], *over: Any) -> dict[str, Any]:
    *tables, key = over
    ends: dict[str, Any] = dict(expect.get(key, {}))
    for each in tables:
        ends |= each.get(key, {})
    return ends
