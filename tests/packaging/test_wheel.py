"""The wheel holds what it needs, and works where there is no checkout."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Installed
from tests.packaging.serving import serving

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CONVERSATION = """\
import foldlog
with foldlog.Client() as client:
    session = client.create("s")
    session.append(foldlog.user("hi"), foldlog.assistant("hello"))
    request = [folded.message for folded in session.messages()]
    print(session.check(request).ok, session.check(request[1:]).violation.kind.name)
    print(session.verify().intact)
"""


@pytest.mark.parametrize("folder", ["migrations", "protos"])
def test_the_wheel_contains_the_folder_whole(wheel: Path, folder: str) -> None:
    source = {
        f"foldlog/{path.relative_to(ROOT)}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert source
    assert source - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_wheel_contains_nothing_but_the_package(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"foldlog", f"foldlog-{VERSION}.dist-info"}


def test_the_wheel_is_typed_and_carries_its_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "foldlog/py.typed" in names
    assert f"foldlog-{VERSION}.dist-info/licenses/LICENSE" in names


def test_the_command_tells_the_version_of_pyproject(installed: Installed) -> None:
    assert VERSION in installed.run("foldlog", "--version")


def test_the_package_comes_from_the_wheel(installed: Installed) -> None:
    place = installed.run("python", "-c", "import foldlog; print(foldlog.__file__)").strip()
    assert Path(place).is_relative_to(installed.programs.parent)


def test_an_installed_wheel_serves_on_sqlite(installed: Installed) -> None:
    database = installed.folder / "test.db"
    with serving(installed, {"FOLDLOG_DATABASE_URL": f"sqlite:///{database}"}) as address:
        environment = {"FOLDLOG_ADDRESS": address}
        said = installed.run("python", "-c", CONVERSATION, environment=environment)
    assert said.split() == ["True", "MISSING_MESSAGE", "True"]
    assert database.exists()
