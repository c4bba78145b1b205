"""An installed wheel, outside of the checkout: built once, in a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Installing takes longer than all else here: one worker does it, for every test of the group.
GROUP = pytest.mark.xdist_group("wheel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that use the wheel on one worker."""
    for item in items:
        if {"wheel", "installed"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(GROUP)


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that has the wheel, and a folder outside of the checkout to work in."""

    programs: Path
    folder: Path

    def run(self, *command: str, environment: dict[str, str] | None = None) -> str:
        """Run a command of the environment and return what it wrote. Raises if it fails."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment(environment or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def environment(self, added: dict[str, str]) -> dict[str, str]:
        """Return this process's environment without ours, and with the wheel's programs first."""
        ours = ("FOLDLOG_", "PYTHON", "PG", "VIRTUAL_ENV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        return kept | {"PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"} | added


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    (built,) = folder.glob("foldlog-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with the extras of the image, installed with the pinned versions."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    programs = folder / "venv" / "bin"
    constraints = str(ROOT / "constraints.txt")
    _pip(programs / "python", "install", "-c", constraints, f"{wheel}[postgres,metrics,zstd]")
    work = folder / "work"
    work.mkdir()
    return Installed(programs, work)


def _pip(python: str | Path, *arguments: str) -> None:
    command = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
