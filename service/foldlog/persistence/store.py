"""Opening a store by its URL."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Literal

from foldlog.persistence.checkpoints import CheckpointRecorder
from foldlog.persistence.data_keys import DataKeyTable
from foldlog.persistence.erasures import ErasureTable
from foldlog.persistence.errors import SchemaError, postgres_extra
from foldlog.persistence.index import SessionIndex
from foldlog.persistence.keys import KeyTable
from foldlog.persistence.object_bucket import BucketFiles
from foldlog.persistence.object_cipher import Throwaway
from foldlog.persistence.object_directory import DirectoryFiles
from foldlog.persistence.object_files import ObjectFiles
from foldlog.persistence.objects import ObjectStore
from foldlog.persistence.quotas import QuotaTable
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.timeouts import Timeouts

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
INLINE_BYTES = 256 * 1024
TIMEOUTS = Timeouts()


@dataclass(frozen=True)
class Store:
    """An open store."""

    dialect: Literal["sqlite", "postgres"]
    recorder: SessionRecorder
    checkpoints: CheckpointRecorder
    index: SessionIndex
    objects: ObjectStore
    keys: KeyTable
    data_keys: DataKeyTable
    erasures: ErasureTable
    quotas: QuotaTable
    close: Callable[[], None]
    scoped: Callable[[str], Store] | None = None
    is_shared: bool = False
    throwaway: Callable[[], Throwaway] | None = None  # for what waits in a file, where it encrypts

    @property
    def is_exclusive(self) -> bool:
        """Whether no other process writes sessions to the store."""
        return self.dialect == "sqlite" and not self.is_shared

    @property
    def keeps_tenants_apart(self) -> bool:
        """Whether the database itself hides a tenant's rows from another's queries."""
        return self.scoped is not None

    def for_tenant(self, tenant: str) -> Store:
        """Return the store as the calls of a tenant get it.

        On PostgreSQL, under row-level security, they find what is the tenant's and nothing else.
        """
        return self if self.scoped is None else self.scoped(tenant)


def open_store(
    database_url: str,
    *,
    pool_size: int = 8,
    reader_threads: int = 4,
    hint_url: str = "",
    object_directory: str = "",
    inline_bytes: int = INLINE_BYTES,
    timeouts: Timeouts = TIMEOUTS,
    requires_row_security: bool = False,
    is_shared: bool = False,
) -> Store:
    """Open the store that the URL names.

    SQLite is created and brought up to date; PostgreSQL must have been migrated, or SchemaError
    says so, and is bound by `timeouts`. `hint_url` is a direct connection, for hints, where
    `database_url` is a pool's. Attachments of more than `inline_bytes` go to `object_directory`, a
    path or a URL; where that is empty, beside a SQLite file, for SQLite in memory to a temporary
    directory, and for PostgreSQL nowhere.
    A SQLite file that is to be shared is not taken for this process, and has to be up to date.
    Raises ValueError for a URL of another kind, DriverMissingError, and, with
    `requires_row_security`, SchemaError for a database or a user that it does not bind.
    """
    if database_url.startswith(SQLITE):
        if requires_row_security:
            raise SchemaError("row-level security is required, which SQLite does not have")
        path = database_url.removeprefix(SQLITE)
        return _open_sqlite(path, reader_threads, object_directory, inline_bytes, is_shared)
    if database_url.startswith(POSTGRES):
        files = files_at(object_directory) if object_directory else None
        objects = files, inline_bytes
        store = _open_postgres(database_url, pool_size, hint_url, timeouts, *objects)
        if requires_row_security and not store.keeps_tenants_apart:
            store.close()
            raise SchemaError(
                "row-level security is required, and does not bind the database's owner or a"
                " superuser: serve as a user let in with `foldlog migrate --service-user NAME`"
            )
        return store
    raise ValueError("a database URL begins with sqlite:/// or postgresql://")


def _open_sqlite(
    path: str, readers: int, object_directory: str, inline_bytes: int, is_shared: bool
) -> Store:
    from foldlog.persistence.sqlite.checkpoints import SQLiteCheckpointRecorder
    from foldlog.persistence.sqlite.connections import MEMORY, SQLiteConnections
    from foldlog.persistence.sqlite.index import SQLiteSessionIndex
    from foldlog.persistence.sqlite.objects import SQLiteObjectTable
    from foldlog.persistence.sqlite.recorder import SQLiteSessionRecorder
    from foldlog.persistence.sqlite.statements import SQLiteStatements

    remove: Callable[[], None] | None = None
    if not object_directory and path == MEMORY:
        object_directory = tempfile.mkdtemp(prefix="foldlog-objects-")

        remove = partial(shutil.rmtree, object_directory, ignore_errors=True)
    files = files_at(object_directory or f"{path}.objects")
    datastore = SQLiteConnections(path, readers, is_shared)
    statements = SQLiteStatements(datastore)
    return Store(
        "sqlite",
        SQLiteSessionRecorder(datastore),
        SQLiteCheckpointRecorder(datastore),
        SQLiteSessionIndex(datastore),
        ObjectStore(SQLiteObjectTable(datastore), files, inline_bytes),
        KeyTable(statements),
        DataKeyTable(statements, attrgetter("bytes")),
        ErasureTable(statements, attrgetter("bytes")),
        QuotaTable(statements),
        _closing(datastore.close, files.close, remove),
        is_shared=is_shared,
    )


def _open_postgres(
    url: str,
    pool_size: int,
    hint_url: str,
    timeouts: Timeouts,
    files: ObjectFiles | None,
    inline_bytes: int,
) -> Store:
    # Loading the driver takes time that those without PostgreSQL need not spend.
    with postgres_extra():
        from foldlog.persistence.postgres.connections import PostgresConnections
        from foldlog.persistence.postgres.opening import store_on

    whole = PostgresConnections(url, pool_size, hint_url, timeouts)
    close = _closing(whole.close, None if files is None else files.close)
    return store_on(whole, files, inline_bytes, close)


def files_at(directory: str) -> ObjectFiles:
    """Return the files of large attachments at a path, or at a URL such as s3://bucket/prefix.

    Raises DriverMissingError, and ValueError for a URL of a kind that fsspec does not know.
    """
    if "://" in directory:
        return BucketFiles(directory)
    files = DirectoryFiles(Path(directory))
    files.remove_abandoned()
    return files


def _closing(*closers: Callable[[], None] | None) -> Callable[[], None]:
    """Return what closes each part, whatever becomes of the ones before it."""

    def close() -> None:
        with ExitStack() as stack:
            for closer in filter(None, reversed(closers)):
                stack.callback(closer)

    return close
