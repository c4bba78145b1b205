"""A served process of an installed wheel."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.packaging.conftest import Installed

DEADLINE_S = 60.0


@contextmanager
def serving(installed: Installed, environment: dict[str, str]) -> Iterator[str]:
    """Run `foldlog serve` with this environment and lend its address."""
    address_file = installed.folder / "address"
    address_file.unlink(missing_ok=True)
    output = installed.folder / "server.log"
    given = {"FOLDLOG_LISTEN": "127.0.0.1:0", "FOLDLOG_ADDRESS_FILE": str(address_file)}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [installed.programs / "foldlog", "serve"],
            cwd=installed.folder,
            env=installed.environment(given | environment),
            stdout=log,
            stderr=log,
        )
    try:
        yield _address(address_file, process, output)
    finally:
        process.terminate()
        assert process.wait(DEADLINE_S) == 0, output.read_text()


def _address(file: Path, process: subprocess.Popen[bytes], output: Path) -> str:
    deadline = time.monotonic() + DEADLINE_S
    while not file.exists():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < deadline, "the server does not serve"
        time.sleep(0.02)
    return file.read_text().strip()
