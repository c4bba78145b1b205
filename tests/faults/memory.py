"""How much memory a server has."""

from __future__ import annotations

from pathlib import Path

from tests.served import Served

MIB = 1024 * 1024


def resident_bytes(served: Served) -> int:
    """Return how much memory a server has now."""
    return _status(served, "VmRSS")


def peak_bytes(served: Served) -> int:
    """Return how much memory a server has had at most."""
    return _status(served, "VmHWM")


def _status(served: Served, name: str) -> int:
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024
