"""How long it takes until there is anything: the server, and the client's import."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from typing import Final

from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Ground
from bench.samples import Sample

SERVICE_IMPORTS: Final = "import grpc.aio, psycopg, eventsourcing.application"
TIMES: Final = 3


def imported(statement: str) -> Case:
    """Return the time of a Python process that does no more than import."""

    def case() -> Sample:
        started = time.perf_counter()
        for _ in range(TIMES):
            subprocess.run([sys.executable, "-c", statement], check=True)
        return {"seconds": (time.perf_counter() - started) / TIMES}

    return case


def starts(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """`foldlog serve` on a new SQLite file until it serves, and imports."""
    numbers = count()

    def serve() -> Sample:
        url = f"sqlite:///{ground.folder / f'started_{next(numbers)}.db'}"
        started = time.perf_counter()
        with ExitStack() as serving:
            ground.serve(url=url, closed_by=serving)
            return {"seconds": time.perf_counter() - started}

    return {
        "foldlog serve, SQLite": serve,
        "import grpc, psycopg, eventsourcing": imported(SERVICE_IMPORTS),
        "import foldlog": imported("from foldlog import Client"),
        "import grpc": imported("import grpc"),
    }


EXPERIMENTS: Final = (
    Experiment(
        "start",
        "from nothing to ready",
        starts,
        (
            Goal(
                "foldlog serve to ready, SQLite: time",
                "importing grpc, psycopg and eventsourcing",
                quotient("foldlog serve, SQLite", "import grpc, psycopg, eventsourcing", "seconds"),
                most=1.5,
            ),
            Goal(
                "import of the client: time",
                "importing grpc",
                quotient("import foldlog", "import grpc", "seconds"),
                most=1.5,
            ),
        ),
        rounds=7,
    ),
)
