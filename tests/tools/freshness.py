"""Fails if what is generated is not what the protos say: `python -m tests.tools.freshness`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.tools.api_reference import api_reference
from tests.tools.descriptors import ROOT
from tests.tools.generate import generate

CODE = ROOT / "service"
REFERENCE = ROOT / "docs" / "reference" / "api.md"
PACKAGES = ("foldlog/v1", "foldlog/internal/v1")


def stale() -> list[str]:
    """Return the generated files that are missing, superfluous or differ, relative to the root."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        found = _generated(CODE)
        expected = _generated(Path(folder))
    names = {name for name in found | expected if found.get(name) != expected.get(name)}
    wrong = [f"service/{name}" for name in sorted(names)]
    if not REFERENCE.exists() or REFERENCE.read_text() != api_reference():
        wrong.append(str(REFERENCE.relative_to(ROOT)))
    return wrong


def _generated(root: Path) -> dict[str, bytes]:
    files = (path for package in PACKAGES for path in (root / package).glob("*_pb2*.py*"))
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


if __name__ == "__main__":
    if wrong := stale():
        sys.exit("Not what the protos say, run make gen: " + ", ".join(wrong))
    print("generated code: up to date")
