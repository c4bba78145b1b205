"""What a run stands on: one PostgreSQL that syncs, the servers beside it, and the workers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import psycopg
from foldlog.persistence.migrate import migrate

from bench.crew import Crew
from bench.processes import cpu_s, family_cpu_s
from bench.samples import Clock
from bench.tasks.inserts import TABLE
from tests.cluster import SETTINGS, Server
from tests.served import Served

T = TypeVar("T")
# PostgreSQL's own defaults for what is written; what tests lower is put back.
DURABLE: Final = {**SETTINGS, "fsync": "on", "shared_buffers": "128MB"}

TASKS: Final = [
    f"bench.tasks.{each}" for each in ("calls", "following", "inserts", "paced", "streams", "turns")
]


class Bare:
    """One of the bare servers, in a process of its own."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"bench.servers.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = f"127.0.0.1:{int(self._process.stdout.readline())}"

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def cpu_s(self) -> float:
        """Return the CPU seconds it has used."""
        return cpu_s(self.pid)

    def close(self) -> None:
        """End it."""
        self._process.communicate()


class Ground:
    """Starts what is asked for, once, and ends it all with the run. A context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._numbers = count(1)
        self._made: dict[str, Any] = {}

    def once(self, name: str, make: Callable[[ExitStack], T]) -> T:
        """Return what was made under a name, and is ended with the run; make it if it was not."""
        if name not in self._made:
            self._made[name] = make(self._stack)
        made: T = self._made[name]
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @cached_property
    def folder(self) -> Path:
        """A folder that is removed in the end."""
        lent = tempfile.TemporaryDirectory(prefix="foldlog-bench-")
        return Path(self._stack.enter_context(lent))

    @cached_property
    def crew(self) -> Crew:
        """The workers."""
        return self._stack.enter_context(Crew(TASKS))

    @cached_property
    def postgres(self) -> Server:
        """The database server."""
        running = Server(DURABLE)
        self._stack.callback(running.stop)
        return running

    def database_cpu_s(self) -> float:
        """Return the CPU seconds of the database server, all its processes."""
        postmaster = self.postgres.folder / "data" / "postmaster.pid"
        return family_cpu_s(int(postmaster.read_text().split("\n")[0]))

    def database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"bench_{next(self._numbers)}"
        self.postgres.execute(f"CREATE DATABASE {name}")
        return self.postgres.url(name)

    def migrated(self) -> str:
        """Make a database with Foldlog's schema and return its URL."""
        url = self.database()
        migrate(url)
        return url

    def serve(
        self,
        environment: Mapping[str, str] | None = None,
        url: str = "",
        closed_by: ExitStack | None = None,
    ) -> Served:
        """Start `foldlog serve` on a database of its own, or on that of the URL."""
        folder = self.folder / f"served_{next(self._numbers)}"
        folder.mkdir()
        served = Served(url or self.migrated(), folder, environment).start()
        (closed_by or self._stack).callback(served.close)
        return served

    @cached_property
    def foldlog(self) -> Served:
        """A server with settings as they are if nobody sets any."""
        return self.serve()

    @cached_property
    def echo(self) -> Bare:
        """The server that echoes."""
        return self._stack.enter_context(closing(Bare("echo")))

    @cached_property
    def group(self) -> Bare:
        """The server that commits in groups and knows no domain."""
        return self._stack.enter_context(closing(Bare("group", self.database())))

    @cached_property
    def hand_url(self) -> str:
        """A database with the table that is written by hand."""
        url = self.database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(TABLE)
        return url

    def clocks(self, server: Served | Bare) -> Mapping[str, Clock]:
        """Return the clocks of a server and of the database behind it."""
        pid = server.process.pid if isinstance(server, Served) else server.pid
        return {"server_us": lambda: cpu_s(pid), "database_us": self.database_cpu_s}

    @property
    def database_clock(self) -> Mapping[str, Callable[[], float]]:
        """The clock of the database alone."""
        return {"database_us": self.database_cpu_s}
