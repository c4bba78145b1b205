"""What a server counts of itself."""

from __future__ import annotations

import re
import urllib.request
from typing import Final

from tests.served import Served

METRICS: Final = {"FOLDLOG_METRICS_LISTEN": "127.0.0.1:0"}


def counted(served: Served, name: str) -> float:
    """Return the value of a gauge of a server that was started with METRICS."""
    addresses = re.findall(r"metrics\.listening address=(\S+)", served.output_tail(1_000_000))
    with urllib.request.urlopen(f"http://{addresses[-1]}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def open_watches(served: Served) -> int:
    """Return how many watches a server has open."""
    return int(counted(served, "foldlog_open_watches"))
