"""The release's bill of materials in CycloneDX's form: what an environment with it has installed.

`python -m tests.tools.sbom PYTHON FILE`, for the interpreter of such an environment.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def write(python: Path, target: Path) -> None:
    """Write the bill of an environment. Raises CalledProcessError."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    about = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"]
    form = ["--output-reproducible", "--of", "JSON", "-o", str(target)]
    subprocess.run([*command, *about, *form], check=True, capture_output=True)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
