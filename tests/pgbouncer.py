"""The tests' own PgBouncer, in transaction mode, in front of a PostgreSQL of the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.cluster import as_account, free_port

START_TIMEOUT_S = 30
CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server_port} user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
logfile = {folder}/log
"""


class PgBouncer:
    """A pooler with so few connections to the server that clients have to take turns."""

    def __init__(self, server_port: int, pool_size: int = 3) -> None:
        self.port = free_port()
        self._program = _program()
        self._folder = Path(tempfile.mkdtemp(prefix="foldlog-pgbouncer-"))
        self._folder.chmod(0o777)
        configuration = self._folder / "pgbouncer.ini"
        about = {"server_port": server_port, "port": self.port, "pool_size": pool_size}
        configuration.write_text(CONFIGURATION.format(folder=self._folder, **about))
        self._command = as_account(self._program, "-q", configuration)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PgBouncer does not serve: {self._told()}")
            time.sleep(0.02)

    def _serves(self) -> bool:
        url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        try:
            with psycopg.connect(url, prepare_threshold=None) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _told(self) -> str:
        log = self._folder / "log"
        return log.read_text()[-500:] if log.exists() else "nothing"

    def kill(self) -> None:
        """End it as a crash would. It can be started again."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it, and remove what it wrote."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def pooled(url: str, pool_size: int = 3) -> Iterator[str]:
    """Lend the URL of a database through a pooler of its own. Skips where there is none."""
    server_port = int(str(conninfo_to_dict(url)["port"]))
    pooler = PgBouncer(server_port, pool_size)
    try:
        yield url.replace(f":{server_port}/", f":{pooler.port}/")
    finally:
        pooler.stop()


def _program() -> Path:
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip("no PgBouncer on this machine")
    return Path(found)
