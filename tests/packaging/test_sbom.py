"""The bill of materials that goes with a release."""

from __future__ import annotations

import json
from pathlib import Path

from packaging.requirements import Requirement

from tests.packaging.conftest import Installed
from tests.tools.sbom import write


def test_it_names_the_release_and_all_that_is_installed_with_it(
    installed: Installed, tmp_path: Path
) -> None:
    target = tmp_path / "foldlog.cdx.json"
    write(installed.programs / "python", target)
    bill = json.loads(target.read_text())
    assert bill["metadata"]["component"]["name"] == "foldlog"
    listed = {each["name"].lower(): each["version"] for each in bill["components"]}
    code = "import importlib.metadata as m; print('\\n'.join(m.requires('foldlog')))"
    for line in installed.run("python", "-c", code).splitlines():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": "postgres"}):
            assert requirement.specifier.contains(listed[requirement.name.lower()]), line
    assert "pytest" not in listed
