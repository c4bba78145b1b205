"""A store of each kind, and rows to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
from foldlog.persistence.postgres.insertion import insert
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store, open_store

from tests.postgres import PARTITIONS, database

BACKENDS = ("sqlite-memory", "sqlite-file", "postgres", "postgres-partitioned")
POSTGRES = BACKENDS[2:]


@contextmanager
def fresh_url(backend: str, folder: Path) -> Iterator[str]:
    """Lend the URL of a new, empty store."""
    if backend == "sqlite-memory":
        yield "sqlite:///:memory:"
    elif backend == "sqlite-file":
        yield f"sqlite:///{folder / f'{uuid4()}.db'}"
    else:
        with database(PARTITIONS if backend == "postgres-partitioned" else 0) as url:
            yield url


@contextmanager
def fresh_store(backend: str, folder: Path) -> Iterator[Store]:
    """Lend a new, empty store."""
    with ExitStack() as stack:
        store = open_store(stack.enter_context(fresh_url(backend, folder)), pool_size=12)
        stack.callback(store.close)
        yield store


def row(
    aggregate_id: UUID, version: int, state: bytes = b"state", request_key: bytes | None = None
) -> SessionStoredEvent:
    """Return a row."""
    return SessionStoredEvent(aggregate_id, version, "topic", state, request_key=request_key)


def rows(aggregate_id: UUID, count: int, first: int = 1) -> list[SessionStoredEvent]:
    """Return rows of successive versions; each state names its version."""
    return [row(aggregate_id, v, f"state {v}".encode()) for v in range(first, first + count)]


@contextmanager
def open_write(url: str, session: UUID) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Write a row, and leave the transaction open."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1")
        insert(connection, [row(session, 1)], 0, 0)
        yield connection
