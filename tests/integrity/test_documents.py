"""What the page on anchoring says is what happens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.documents import ROOT, commands, examples
from tests.cli.shell import Shell
from tests.integrity.conftest import fill
from tests.served import Served

PAGE = ROOT / "docs" / "how-to" / "anchor.md"


@pytest.mark.parametrize("backend", ["sqlite-memory"], indirect=True)
def test_the_pages_commands_and_its_own_verifier_do_what_it_says(
    serve: Callable[..., Served], backend: str, tmp_path: Path
) -> None:
    make, start, *rest = [line for line in commands(PAGE)]
    foldlog = (sys.executable, "-m", "foldlog")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "service"), "PYTHONWARNINGS": "error"}

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(*foldlog, *make.split()[1:])
    assert start == "foldlog serve --signing-key-file signing.pem"
    served = serve(backend, FOLDLOG_SIGNING_KEY_FILE=str(tmp_path / "signing.pem"))
    environment["FOLDLOG_ADDRESS"] = served.address
    session = fill(Shell(served.address))
    for each in rest:
        run(*foldlog, *each.split()[1:])
    (example,) = examples(PAGE)
    assert run(sys.executable, "-c", example.code) == f"signed {session} 7\n"
