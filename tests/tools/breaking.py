"""Compares the wire contract with the one in force: `python -m tests.tools.breaking`.

In force is the newest release, or main before the first one. Where there is nothing to compare
with, it says so and passes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.tools.descriptors import PROTOS, ROOT

BUF = Path(sys.executable).parent / "buf"


def main() -> int:
    """Return buf's exit code, or 0 where there is nothing to compare with."""
    base = contract_in_force()
    if base is None:
        print("buf breaking: SKIPPED, git has neither a release nor another main to compare with")
        return 0
    print(f"buf breaking: against {base}")
    # A worktree's own directory is no repository to buf.
    repository = _git("rev-parse", "--path-format=absolute", "--git-common-dir")
    against = f"{repository}#ref={base},subdir=protos"
    return subprocess.run([BUF, "breaking", PROTOS, "--against", against], check=False).returncode


def contract_in_force() -> str | None:
    """Return the ref to compare with, or None if none differs from the checked-out protos."""
    tags = _git("tag", "--list", "v*", "--sort=-version:refname").splitlines()
    candidates = [*tags[:1], "origin/main", "main"]
    return next((ref for ref in candidates if _has_protos(ref) and _differs(ref)), None)


def _has_protos(ref: str) -> bool:
    return bool(_git("rev-parse", "--quiet", "--verify", f"{ref}:protos"))


def _differs(ref: str) -> bool:
    return bool(_git("diff", "--name-only", ref, "--", "protos"))


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
