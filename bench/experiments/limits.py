"""What the database itself can do: pgbench, and rows as binary arrays, one connection."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from bench import workload
from bench.goals import Case, Cases, Experiment, Missing
from bench.ground import Ground
from bench.samples import MICRO, Sample
from bench.servers.group import TABLE, insert, prepare
from tests.cluster import programs

SECONDS: Final = 2
CLIENTS: Final = (1, 4, 16)
SIZES: Final = (1, 4, 16, 100)
PAYLOAD: Final = 763
SCRIPT: Final = f"""\
\\set number random(1, 2000000000)
INSERT INTO by_pgbench VALUES (:number, '{"x" * PAYLOAD}');
"""
PGBENCH_TABLE: Final = "CREATE TABLE by_pgbench (number bigint, data text NOT NULL)"
RATE: Final = re.compile(r"^tps = ([\d.]+)", re.MULTILINE)


def limits(ground: Ground, stack: ExitStack) -> Cases:
    """Inserts by pgbench, one row each, and by one connection, several rows each."""
    url = ground.database()
    connection = stack.enter_context(psycopg.connect(url, autocommit=True))
    connection.execute(TABLE)
    connection.execute(PGBENCH_TABLE)
    return {**by_pgbench(url), **by_arrays(ground, connection)}


def by_pgbench(url: str) -> Mapping[str, Case | Missing]:
    """Return single-row inserts of pgbench, whose own cost is next to nothing."""
    program = programs() / "pgbench"
    if not program.exists():
        return {"pgbench": Missing("the program is not beside PostgreSQL's others")}
    return {
        f"pgbench, {clients} clients": partial(pgbench, program, url, clients)
        for clients in CLIENTS
    }


def pgbench(program: Path, url: str, clients: int) -> Sample:
    """Run pgbench for a while and return its rate."""
    at = urlsplit(url)
    place = ["-h", str(at.hostname), "-p", str(at.port), "-U", str(at.username)]
    load = ["-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(SECONDS)]
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT)
        script.flush()
        done = subprocess.run(
            [str(program), *place, *load, "-f", script.name, at.path[1:]],
            capture_output=True,
            text=True,
            check=True,
        )
    found = RATE.search(done.stdout)
    assert found is not None, done.stdout
    return {"per_s": float(found[1]), "messages_per_s": float(found[1])}


def by_arrays(ground: Ground, connection: psycopg.Connection[Any]) -> Mapping[str, Case]:
    """Return inserts of several rows, each durable before the next."""
    prepare(connection.pgconn)
    data = [str(each).encode() for each in workload.messages(max(SIZES))]

    def rows(size: int) -> Sample:
        count, cpu = 0, (time.process_time(), ground.database_cpu_s())
        started = time.perf_counter()
        while time.perf_counter() - started < SECONDS:
            insert(connection.pgconn, [uuid4().bytes] * size, range(size), data[:size])
            count += 1
        taken = time.perf_counter() - started
        return {
            "messages_per_s": count * size / taken,
            "per_s": count / taken,
            "client_us": (time.process_time() - cpu[0]) / count * MICRO,
            "database_us": (ground.database_cpu_s() - cpu[1]) / count * MICRO,
        }

    return {f"{size} rows as arrays": partial(rows, size) for size in SIZES}


EXPERIMENTS: Final = (
    Experiment("limits", "what PostgreSQL takes, without gRPC", limits, (), rounds=3),
)
