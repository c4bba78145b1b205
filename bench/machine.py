"""What a run ran on: the machine and the versions, as it says itself."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psycopg

PACKAGES: Final = ("eventsourcing", "grpcio", "protobuf", "psycopg", "uvloop")
SYNCS: Final = 100
BLOCK: Final = bytes(8_192)


def facts(database_url: str, folder: Path) -> Mapping[str, str]:
    """Return what is to be known of the machine, the database and the versions."""
    with psycopg.connect(database_url) as connection:
        settings = {name: _setting(connection, name) for name in ("fsync", "synchronous_commit")}
        database = f"PostgreSQL {_setting(connection, 'server_version')}"
    durable = ", ".join(f"{name} {value}" for name, value in settings.items())
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "database": f"{database}, {durable}",
        "disk": f"a sync of 8 kB takes {_sync_s(folder) * 1e6:.0f} us, median of {SYNCS}",
        "versions": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "load before": " ".join(f"{each:.1f}" for each in os.getloadavg()),
    }


def _setting(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    assert row is not None
    return str(row[0])


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> str:
    pages, page_bytes = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{pages * page_bytes / 2**30:.0f} GiB"


def _sync_s(folder: Path) -> float:
    """Return how long one durable write takes where the run keeps its files."""
    taken = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(BLOCK)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - started)
    return statistics.median(taken)
