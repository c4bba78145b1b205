"""`make fuzz`: each target in turn, for its part of the time. What failed is in build/fuzz."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.fuzz.targets import TARGETS

ROOT: Final = Path(__file__).parents[2]
BUILD: Final = ROOT / "build" / "fuzz"
FAILED: Final = ("crash-*", "timeout-*", "oom-*", "leak-*")


def main() -> None:
    """Fuzz what the command line asks for; end with 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", choices=sorted(TARGETS), action="append")
    asked = parser.parse_args()
    if find_spec("atheris") is None:
        print("fuzz: SKIPPED, atheris is not installed: it has no wheel for this Python or machine")
        return
    names = asked.only or list(TARGETS)
    seconds = max(5, round(asked.seconds / len(names)))
    failed = [name for name in names if not _is_sound(name, seconds)]
    for name in failed:
        found = [path for kind in FAILED for path in (BUILD / name).glob(kind)]
        print(f"{name} failed: {', '.join(map(str, found)) or 'see its log'}")
    print(f"fuzz: {len(names)} targets for {seconds} s each, {len(failed)} failed")
    sys.exit(bool(failed))


def _is_sound(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own, and tell whether it failed."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.one", name, str(folder), str(seconds)]
    with (folder / "log").open("wb") as log:
        done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, check=False)
    said = (folder / "log").read_text(errors="replace")
    executed = [line for line in said.splitlines() if "number_of_executed_units" in line]
    print(f"{name}: {' '.join(executed) or 'ended early'}, code {done.returncode}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
