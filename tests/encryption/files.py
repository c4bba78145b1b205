"""All that a served database holds, as somebody sees it who has the files and no key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from tests.postgres import owner_url
from tests.served import Served

TABLES = (
    "foldlog_events",
    "foldlog_checkpoints",
    "foldlog_sessions",
    "foldlog_session_terms",
    "foldlog_session_keys",
    "foldlog_objects",
    "foldlog_object_references",
    "foldlog_call_ledger",
)


def holds(served: Served, secret: bytes) -> list[str]:
    """Return where a secret stands in clear: tables, and files of attachments."""
    found = [table for table in TABLES if _is_in(served.database_url, table, secret)]
    return found + [str(path) for path in attachment_files(served) if secret in path.read_bytes()]


def _is_in(url: str, table: str, secret: bytes) -> bool:
    return any(
        secret in _bytes(value) for row in rows(url, f"SELECT * FROM {table}") for value in row
    )


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Return what a query gives, around the service."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(sql).fetchall()
    with psycopg.connect(owner_url(url)) as connection:
        return connection.execute(sql).fetchall()


def change(url: str, sql: str) -> None:
    """Change the database around the service."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.execute(sql)
            connection.commit()
        return
    with psycopg.connect(owner_url(url)) as connection:
        connection.execute(sql)


def attachment_files(served: Served) -> Iterator[Path]:
    """Yield the files of large attachments."""
    for name in ("objects", "foldlog.db.objects"):
        folder = served.output.parent / name
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())
