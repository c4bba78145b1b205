"""Known vulnerabilities of the pinned packages, as far as pip-audit reaches its data.

`python -m tests.tools.audit` ends with 1 if a package has one, and says what it did not judge.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found: packages with their vulnerabilities, and those that could not be judged."""

    vulnerable: dict[str, list[str]]
    unjudged: list[str]
    judged_count: int

    def said(self) -> str:
        """Return what a person is to read."""
        lines = [f"{name}: {', '.join(ids)}" for name, ids in self.vulnerable.items()]
        if self.unjudged:
            lines.append(f"AUDIT INCOMPLETE: {len(self.unjudged)} packages were not judged, since")
            lines.append("the data of vulnerabilities is out of reach or does not know them")
        lines.append(f"{self.judged_count} packages judged, {len(self.vulnerable)} vulnerable")
        return "\n".join(lines)


def read(report: dict[str, Any]) -> Audit:
    """Return what a report of pip-audit says."""
    vulnerable: dict[str, list[str]] = {}
    unjudged: list[str] = []
    for each in report["dependencies"]:
        if "skip_reason" in each:
            unjudged.append(each["name"])
        elif each["vulns"]:
            vulnerable[f"{each['name']} {each['version']}"] = [v["id"] for v in each["vulns"]]
    judged_count = len(report["dependencies"]) - len(unjudged)
    return Audit(vulnerable, unjudged, judged_count)


def run(constraints: Path = CONSTRAINTS) -> Audit | None:
    """Ask pip-audit; None where it cannot reach its data at all."""
    command = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip"]
    done = subprocess.run(
        [*command, "--progress-spinner", "off", "-f", "json", "-r", str(constraints)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return read(json.loads(done.stdout))
    except ValueError:
        print(done.stderr.strip()[-500:], file=sys.stderr)
        return None


def main() -> int:
    """Audit, say what was found, and return the exit code."""
    found = run()
    if found is None:
        print("AUDIT SKIPPED: pip-audit does not reach its data")
        return 0
    print(found.said())
    return 1 if found.vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
