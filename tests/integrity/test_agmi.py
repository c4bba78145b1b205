"""The public checker agent-memory-integrity on Foldlog: each of its edits is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.served import ROOT

SECURITY = ROOT / "docs" / "security.md"


def test_every_edit_of_the_public_checker_is_reported(tmp_path: Path) -> None:
    row = tmp_path / "row.json"
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "agmi.check", "--json", str(row)),
            *("--adapter", "tests.integrity.agmi_adapter:FoldlogAdapter"),
        ],
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'service'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    edits = json.loads(row.read_text())["edits"]
    assert [each["verdict"] for each in edits] == ["REPORTED"] * 9, edits
    told = SECURITY.read_text()
    assert f"agent-memory-integrity {version('agent-memory-integrity')}" in told
    for each in edits:
        assert f"| {each['edit']} | reported |" in told
