"""Whether a SQLite file is ours, and that one process at a time has it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from foldlog.persistence.errors import DatabaseFileError, UnavailableError

APPLICATION_ID = int.from_bytes(b"FOLD", "big")
MAGIC = b"SQLite format 3\x00"
HEADER_BYTES = 100
APPLICATION_ID_AT = slice(68, 72)


def check_is_ours(path: Path) -> None:
    """Raise DatabaseFileError unless the file is ours, empty or not there.

    Reads the header (https://www.sqlite.org/fileformat2.html#the_database_header) without SQLite,
    which would leave files of its own beside a foreign database in WAL mode.
    """
    header = _header(path)
    if not header:
        return
    if not header.startswith(MAGIC):
        raise DatabaseFileError(f"{path} is not a SQLite database: choose another file")
    if int.from_bytes(header[APPLICATION_ID_AT], "big") != APPLICATION_ID:
        raise DatabaseFileError(f"{path} is a database of another application: choose another file")


def _header(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEADER_BYTES)
    except FileNotFoundError:
        if path.parent.is_dir():
            return b""
        raise DatabaseFileError(f"{path} cannot be made: {path.parent} is no folder") from None
    except OSError as error:
        raise DatabaseFileError(f"{path} cannot be read: {error.strerror}") from error


class OpenFiles:
    """The files that this process has open: noticed when somebody removes or replaces one.

    SQLite would write on to a file without a name, and what it acknowledged would go with it.
    """

    def __init__(self, database: Path) -> None:
        beside = [f"{database}{suffix}" for suffix in ("-wal", "-shm")]
        names = [str(database), *beside, str(FileLock.path_of(database))]
        self._identities = {path: _identity(path) for path in names}

    def require_in_place(self) -> None:
        """Raise UnavailableError if one is gone or another one. Costs some microseconds."""
        for path, identity in self._identities.items():
            if _identity(path) != identity:
                wrong = "was removed or replaced under the running service: restart it"
                raise UnavailableError(f"{path} {wrong}", f"the file {Path(path).name} {wrong}")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


class FileLock:
    """Keeps other processes from a database file, until closed or until this process ends.

    A lock of the open file (flock), beside the database since SQLite locks the database itself.
    """

    def __init__(self, database: Path) -> None:
        self.path = self.path_of(database)
        self._file = self._opened(database)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip()
            self._file.close()
            raise DatabaseFileError(
                f"{database} is in use by process {owner or 'unknown'}: stop it, choose another"
                " file, or use PostgreSQL to serve from several processes"
            ) from None
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    @staticmethod
    def path_of(database: Path) -> Path:
        """Return where the lock of a database file is."""
        return Path(f"{database}.lock")

    def _opened(self, database: Path) -> IO[str]:
        try:
            return self.path.open("a+", encoding="ascii")
        except OSError as error:
            raise DatabaseFileError(
                f"{database} cannot be locked: {self.path}: {error.strerror}"
            ) from error

    def close(self) -> None:
        """Let the database go. The lock file stays: removing it would race with its next owner."""
        self._file.close()
