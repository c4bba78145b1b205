"""The schema of a SQLite file: the migrations in order, and which of them a file has."""

from __future__ import annotations

import sqlite3
from importlib.resources.abc import Traversable

from foldlog.persistence.errors import SchemaError
from foldlog.persistence.scripts import migrations, statements
from foldlog.persistence.sqlite.file import APPLICATION_ID


def steps() -> list[Traversable]:
    """Return the migrations in order; the version of a file is how many of them it has."""
    return sorted(
        (step for step in migrations("sqlite").iterdir() if step.name.endswith(".sql")),
        key=lambda step: step.name,
    )


def pending(connection: sqlite3.Connection, path: str) -> list[Traversable]:
    """Return the migrations that the file lacks. Raises SchemaError for a newer release's file."""
    version = _version(connection)
    known = steps()
    if version > len(known):
        raise SchemaError(
            f"{path} has schema version {version} and this release knows {len(known)}: use the"
            " release that wrote it, or a newer one"
        )
    return known[version:]


def create_or_upgrade(connection: sqlite3.Connection, path: str) -> list[str]:
    """Apply what is pending, all of it or nothing, and return the names.

    In one transaction, for each waits for the disk several times. To be called before a new file is
    put in WAL mode, so that its header says that it is ours before anything could stand in the
    write-ahead log only.
    """
    missing = pending(connection, path)
    if not missing:
        return []
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in missing:
            _apply(connection, step)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return [step.name.removesuffix(".sql") for step in missing]


def _apply(connection: sqlite3.Connection, step: Traversable) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in statements(step):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {_version(connection) + 1}")


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)
