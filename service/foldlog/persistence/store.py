"""Opening a store by its URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from foldlog.persistence.checkpoints import CheckpointRecorder
from foldlog.persistence.errors import postgres_extra
from foldlog.persistence.index import SessionIndex
from foldlog.persistence.recorder import SessionRecorder

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True)
class Store:
    """An open store."""

    dialect: Literal["sqlite", "postgres"]
    recorder: SessionRecorder
    checkpoints: CheckpointRecorder
    index: SessionIndex
    close: Callable[[], None]


def open_store(
    database_url: str, *, pool_size: int = 8, reader_threads: int = 4, hint_url: str = ""
) -> Store:
    """Open the store that the URL names.

    SQLite is created and brought up to date; PostgreSQL must have been migrated, or SchemaError
    says so. `hint_url` is a direct connection, for hints, where `database_url` is a pool's.
    Raises ValueError for a URL of another kind, and DriverMissingError.
    """
    if database_url.startswith(SQLITE):
        return _open_sqlite(database_url.removeprefix(SQLITE), reader_threads)
    if database_url.startswith(POSTGRES):
        return _open_postgres(database_url, pool_size, hint_url)
    raise ValueError("a database URL begins with sqlite:/// or postgresql://")


def _open_sqlite(path: str, readers: int) -> Store:
    from foldlog.persistence.sqlite.checkpoints import SQLiteCheckpointRecorder
    from foldlog.persistence.sqlite.connections import SQLiteConnections
    from foldlog.persistence.sqlite.index import SQLiteSessionIndex
    from foldlog.persistence.sqlite.recorder import SQLiteSessionRecorder

    datastore = SQLiteConnections(path, readers)
    return Store(
        "sqlite",
        SQLiteSessionRecorder(datastore),
        SQLiteCheckpointRecorder(datastore),
        SQLiteSessionIndex(datastore),
        datastore.close,
    )


def _open_postgres(url: str, pool_size: int, hint_url: str) -> Store:
    # Loading the driver takes time that those without PostgreSQL need not spend.
    with postgres_extra():
        from foldlog.persistence.postgres.checkpoints import PostgresCheckpointRecorder
        from foldlog.persistence.postgres.connections import PostgresConnections
        from foldlog.persistence.postgres.index import PostgresSessionIndex
        from foldlog.persistence.postgres.recorder import PostgresSessionRecorder

    datastore = PostgresConnections(url, pool_size, hint_url)
    return Store(
        "postgres",
        PostgresSessionRecorder(datastore),
        PostgresCheckpointRecorder(datastore),
        PostgresSessionIndex(datastore),
        datastore.close,
    )
