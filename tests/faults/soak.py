"""`make soak`: every storm in its long form, and the table of what came of it.

Writes the table between two markers of docs/reliability.md. Fails if a test did, or if a storm has
no control.
"""

from __future__ import annotations

import argparse
import os
import platform
import secrets
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.faults.outcome import Outcome, Recorded

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:randomly")
COLUMNS = (
    *("fault", "injected", "operations", "acknowledged", "lost", "doubled", "reordered"),
    *("unavailable at most", "control"),
)


def main() -> None:
    """Run the soak that the command line asks for."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    asked = parser.parse_args()
    print(f"A soak of {asked.seconds:.0f} s. To repeat it: make soak SEED={asked.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        report.touch()
        code = _storms(asked.seconds, asked.seed, report)
        records = [Recorded.read(line) for line in report.read_text().splitlines()]
    about = f"{asked.seconds:.0f} s with seed {asked.seed}"
    PAGE.write_text(with_table(PAGE.read_text(), table(records, about)))
    print(f"{PAGE.relative_to(ROOT)} is written")
    for fault in sorted(uncontrolled(records)):
        print(f"no control was run of: {fault}")
    sys.exit(code or bool(uncontrolled(records)))


def _storms(seconds: float, seed: int, report: Path) -> int:
    chosen = {"SOAK_S": str(seconds), "SOAK_SEED": str(seed), "SOAK_REPORT": str(report)}
    command = [sys.executable, "-m", "pytest", "tests/faults", "-v", *PLUGINS]
    return subprocess.run(command, cwd=ROOT, env=os.environ | chosen, check=False).returncode


def with_table(page: str, written: str) -> str:
    """Return the page with this between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{written}\n{END}{after}"


def table(records: Iterable[Recorded], about: str) -> str:
    """Return what the soak found: a line about it, and a row per fault with its control's find."""
    storms: dict[str, Outcome] = {}
    controls: dict[str, Outcome] = {}
    for record in records:
        rows, name = (controls if record.is_control else storms), record.outcome.fault
        rows[name] = rows[name].plus(record.outcome) if name in rows else record.outcome
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    when = f"{datetime.now(UTC):%Y-%m-%d}: {about}, on {machine}, SQLite {sqlite3.sqlite_version}"
    lines = [_line(COLUMNS), _line(["---"] * len(COLUMNS))]
    lines += [_line(_cells(storms[name], controls.get(name))) for name in sorted(storms)]
    return "\n".join([f"{when}.", "", *lines])


def uncontrolled(records: Iterable[Recorded]) -> set[str]:
    """Return the faults that no control was run of: their zeros prove nothing."""
    faults: dict[bool, set[str]] = {False: set(), True: set()}
    for record in records:
        faults[record.is_control].add(record.outcome.fault)
    return faults[False] - faults[True]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(storm: Outcome, control: Outcome | None) -> list[str]:
    numbers = (storm.injected, storm.operations, storm.acknowledged)
    wrong = (storm.lost, storm.doubled, storm.reordered)
    name = f"{storm.fault}; {storm.remark}" if storm.remark else storm.fault
    unavailable = f"{storm.unavailable_s:.1f} s"
    cells = [name, *(f"{number:,}" for number in (*numbers, *wrong)), unavailable]
    return [*cells, _found(storm.control, control)]


def _found(safeguard: str, control: Outcome | None) -> str:
    if control is None:
        return f"{safeguard}: not run"
    counts = {"lost": control.lost, "doubled": control.doubled, "reordered": control.reordered}
    found = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    if control.unsound:
        found.append(f"{control.unsound:,} other faults")
    return f"{safeguard}: {', '.join(found)} of {control.acknowledged:,}"


if __name__ == "__main__":
    main()
