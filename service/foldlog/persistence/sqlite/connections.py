"""The connections to a SQLite database, in place of the package's pool.

That pool loses its writer lock when it runs out of connections while a writer waits.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from threading import RLock
from typing import Any
from urllib.parse import quote

from eventsourcing.persistence import PersistenceError
from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore

from foldlog.persistence.errors import (
    StoreDamagedError,
    UnansweredError,
    UnavailableError,
    translated,
)
from foldlog.persistence.sqlite.file import FileLock, OpenFiles, check_is_ours
from foldlog.persistence.sqlite.schema import create_or_upgrade

MEMORY = ":memory:"
BUSY_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 5.0
AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class SQLiteConnections(SQLiteDatastore):
    """One writer and a few readers on a file of ours; one connection for both in memory.

    Opening takes the file for this process, unless it is to be shared, and brings its schema up to
    date.
    """

    def __init__(self, path: str, readers: int = 4, is_shared: bool = False) -> None:
        self.single_row_tracking = True
        self.originator_id_type = "uuid"
        self._in_memory = path == MEMORY
        self._path = path if self._in_memory else str(Path(path).resolve())
        self._lock = RLock()
        self._file_lock = None if self._in_memory or is_shared else _locked(Path(self._path))
        self._files: OpenFiles | None = None
        try:
            self._writer = self._opened()
            if not self._in_memory:
                self._files = OpenFiles(Path(self._path))
        except BaseException:
            self._release_file()
            raise
        self._closed = False
        self._readers: LifoQueue[sqlite3.Connection | None] = LifoQueue()
        self._reader_count = 0 if self._in_memory else readers
        for _ in range(self._reader_count):
            self._readers.put(None)

    def _opened(self) -> sqlite3.Connection:
        with translation():
            connection = connect(self._path)
            try:
                create_or_upgrade(connection, self._path)
                prepare(connection)
                # From here on the write-ahead log has a file.
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            except BaseException:
                connection.close()
                raise
        return connection

    def _require_in_place(self) -> None:
        if self._files is None:
            return
        try:
            self._files.require_in_place()
        except UnavailableError:
            # If the log was removed, what was acknowledged gets into the database yet; if the
            # database was replaced, nothing of it gets into the new one at the next start.
            with self._lock, suppress(sqlite3.Error):
                self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            raise

    @contextmanager
    def writer(self) -> Iterator[sqlite3.Connection]:
        """Lend the writer, inside a transaction that is committed unless an exception comes."""
        with translation(), self._lock:
            self._check_open()
            self._require_in_place()
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            try:
                self._require_in_place()
            except UnavailableError as error:
                raise UnansweredError(str(error), error.told) from error

    def rows(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return what one SELECT with %s for its parameters gives."""
        with translation(), self._reader() as connection:
            return connection.execute(sql.replace("%s", "?"), parameters).fetchall()

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        if self._in_memory:
            with self._lock:
                self._check_open()
                yield self._writer
            return
        connection = self._readers.get()
        try:
            self._check_open()
            if connection is None:
                connection = connect(self._path)
                prepare(connection)
            self._require_in_place()
            yield connection
        finally:
            self._readers.put(connection)

    @contextmanager
    def transaction(self, *, commit: bool) -> Iterator[SQLiteCursor]:
        """Lend a cursor as the package's recorders expect it."""
        with self.writer() if commit else self._reader() as connection, translation():
            yield SQLiteCursor(connection.cursor())

    def empty_log(self) -> None:
        """Move what the write-ahead log holds into the file, and empty it unless somebody reads."""
        with translation(), self._lock:
            self._check_open()
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the connections, the writer last, so that it tidies the write-ahead log."""
        self._closed = True
        for _ in range(self._reader_count):
            with suppress(Empty):
                connection = self._readers.get(timeout=CLOSE_TIMEOUT_S)
                if connection is not None:
                    connection.close()
        self._reader_count = 0
        # Whoever waits for a reader takes this turn by turn, and is told.
        self._readers.put(None)
        with self._lock:
            self._writer.close()
        self._release_file()

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError("the store is closed")

    def _release_file(self) -> None:
        if self._file_lock is not None:
            self._file_lock.close()

    def __del__(self) -> None:
        """Leave closing to the owner: the package's class would close its pool here."""


def connect(path: str, *, uri: bool = False) -> sqlite3.Connection:
    """Open a connection that begins no transaction by itself."""
    return sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, uri=uri
    )


def inspect(path: Path) -> sqlite3.Connection:
    """Open a file of ours that another process may be using, for reading only."""
    check_is_ours(path)
    with translation():
        return connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)


def prepare(connection: sqlite3.Connection) -> None:
    """Make commits durable: the write-ahead log is synced by each of them, on macOS too."""
    for setting in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "fullfsync = ON",
        "checkpoint_fullfsync = ON",
        "journal_size_limit = 67108864",
        "cache_size = -16384",
        "secure_delete = ON",  # what is deleted or replaced is overwritten
    ):
        connection.execute(f"PRAGMA {setting}").fetchall()


@contextmanager
def translation() -> Iterator[None]:
    """Raise the driver's errors as those of `eventsourcing.persistence`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error) from error


def _translated(error: sqlite3.Error) -> PersistenceError:
    # Errors that Python's module raises by itself have no code.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in DAMAGED:
        return StoreDamagedError(str(error))
    return UnavailableError(str(error), str(error)) if code in AWAY else translated(error)


def _locked(path: Path) -> FileLock:
    check_is_ours(path)
    return FileLock(path)
