"""The server of the demo: a real process on a SQLite file, killed and started again."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

START_DEADLINE_S = 30.0


class ServerStartError(RuntimeError):
    """The server did not come up. The message is what it wrote."""


class Server:
    """One `foldlog serve` process at a time, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "foldlog.db"
        self.address = "127.0.0.1:0"
        self._address_file = folder / "address"
        self._output = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start the process, wait until it serves, and return how many seconds that took."""
        begun = time.monotonic()
        self._address_file.unlink(missing_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self.command, stdout=output, stderr=output)
        while not self._address_file.exists():
            if self._process.poll() is not None or time.monotonic() - begun > START_DEADLINE_S:
                raise ServerStartError(self._output.read_text(errors="replace"))
            time.sleep(0.01)
        self.address = self._address_file.read_text().strip()
        return time.monotonic() - begun

    @property
    def command(self) -> list[str]:
        """The process's arguments."""
        return [
            *(sys.executable, "-m", "foldlog", "serve"),
            *("--database-url", f"sqlite:///{self.database}"),
            *("--listen", self.address),
            *("--address-file", str(self._address_file)),
        ]

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> int:
        """End the process as a power cut would, with SIGKILL, and return its exit code."""
        assert self._process is not None
        self._process.kill()
        return self._process.wait()

    def stop(self) -> None:
        """End the process gently, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
