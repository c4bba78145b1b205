"""The tests' own PostgreSQL: one server for each test process, started when first asked for."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from foldlog.persistence.migrate import ServiceUser, migrate

from tests.cluster import SETTINGS, NoPostgresError, Server, programs

SERVICE_USER = "foldlog_service"
PARTITIONS = 4

_numbers = itertools.count(1)
_lock = threading.Lock()


def server() -> Server:
    """Return this process's server. Skips the test where there is no PostgreSQL."""
    with _lock:
        try:
            return _started()
        except NoPostgresError as error:
            pytest.skip(f"no PostgreSQL: {error}")


@contextmanager
def database(partitions: int = 0) -> Iterator[str]:
    """Lend the URL of a fresh, migrated database, partitioned or plain."""
    running = server()
    with _lock:
        template = _template(partitions)
    name = f"foldlog_{os.getpid()}_{next(_numbers)}"
    running.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield running.url(name)
    finally:
        running.execute(f"DROP DATABASE {name} WITH (FORCE)")


def service_url(url: str) -> str:
    """Return the URL of the same database for the user as whom the service connects to it."""
    return url.replace("postgres@", f"{SERVICE_USER}@", 1)


def owner_url(url: str) -> str:
    """Return the URL of the same database for its owner, whom nothing binds."""
    return url.replace(f"{SERVICE_USER}@", "postgres@", 1)


@contextmanager
def empty_database() -> Iterator[str]:
    """Lend the URL of a fresh database without our schema."""
    running = server()
    name = f"foldlog_{os.getpid()}_{next(_numbers)}"
    running.execute(f"CREATE DATABASE {name}")
    try:
        yield running.url(name)
    finally:
        running.execute(f"DROP DATABASE {name} WITH (FORCE)")


@cache
def _template(partitions: int) -> str:
    name = f"foldlog_template_{partitions}"
    running = _started()
    running.execute(f"CREATE DATABASE {name}")
    migrate(running.url(name), partitions=partitions, service_user=ServiceUser(SERVICE_USER))
    return name


@contextmanager
def another_server(**settings: str) -> Iterator[Server]:
    """Lend a second server with a cluster of its own, with these settings over the usual ones."""
    server()
    running = Server(SETTINGS | settings)
    try:
        yield running
    finally:
        running.stop()


def program(name: str) -> Path:
    """Return where one of PostgreSQL's programs is, such as pg_dump. Skips where it is missing."""
    path = programs() / name
    if not path.exists():
        pytest.skip(f"no {name} beside PostgreSQL's other programs")
    return path


@cache
def _started() -> Server:
    running = Server(SETTINGS)
    atexit.register(running.stop)
    return running
