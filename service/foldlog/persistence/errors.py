"""What can go wrong with a store, beside what `eventsourcing.persistence` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from eventsourcing import persistence
from eventsourcing.persistence import IntegrityError, OperationalError, PersistenceError

Constraint = Literal["version", "request"]

# PEP 249 gives the classes of every driver these names.
_BY_NAME: dict[str, type[PersistenceError]] = {
    kind.__name__: kind
    for kind in (
        persistence.InterfaceError,
        persistence.DataError,
        persistence.OperationalError,
        persistence.IntegrityError,
        persistence.InternalError,
        persistence.ProgrammingError,
        persistence.NotSupportedError,
        persistence.DatabaseError,
    )
}


class DuplicateRowError(IntegrityError):
    """A row was not written since one with its version or its request key is there.

    Nothing of the call was written. If a row collides by both, `constraint` is "version".
    """

    def __init__(self, constraint: Constraint) -> None:
        self.constraint: Constraint = constraint
        super().__init__(f"a row with this {constraint} is stored already")


class UnavailableError(OperationalError):
    """The store cannot be reached or cannot write now. Nothing was written.

    `told` is what callers may know of the cause: no address, no path, no name.
    """

    def __init__(self, message: str, told: str = "") -> None:
        self.told = told
        super().__init__(message)


class UnansweredError(UnavailableError):
    """The store broke off: a write may have taken effect, or may yet."""


class HeldError(UnavailableError):
    """Another transaction held a row, or a row's place, for too long. Nothing was written."""


class StoreDamagedError(PersistenceError):
    """The database is damaged where it was read or written. Nothing was written."""


class PoolExhausted(OperationalError):
    """Too many callers wait for a connection; nothing was sent."""


class ObjectDamagedError(PersistenceError):
    """A stored attachment is not what its digest says."""

    def __init__(self, sha256: bytes) -> None:
        self.sha256 = sha256
        super().__init__(f"attachment {sha256.hex()} is damaged")


class NoDirectoryError(PersistenceError):
    """An attachment is too large for the database, and no directory is set."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes
        super().__init__(f"{size_bytes} bytes need a directory for attachments, and none is set")


class MasterKeyMissingError(PersistenceError):
    """What is encrypted cannot be read, or written, without a master key that is not there."""

    def __init__(self, key_id: str, message: str = "") -> None:
        self.key_id = key_id
        super().__init__(message or f"the master key {key_id!r} is missing")


class KeyDamagedError(PersistenceError):
    """A stored key is lost, or is not the one that was wrapped."""


class SchemaError(PersistenceError):
    """The schema is not the one this release works with; the message says what to run."""


class DriverMissingError(PersistenceError):
    """Something is asked for, and the extra that brings what it needs is not installed."""


class DatabaseFileError(PersistenceError):
    """A SQLite file is not ours, in use, or cannot be opened. It is untouched."""


@contextmanager
def postgres_extra() -> Iterator[None]:
    """Say what to install if the imports inside fail."""
    try:
        yield
    except ImportError as error:
        raise DriverMissingError(
            f"PostgreSQL needs what the extra foldlog[postgres] brings: {error}"
        ) from error


@contextmanager
def s3_extra() -> Iterator[None]:
    """Say what to install if the imports inside fail."""
    try:
        yield
    except ImportError as error:
        raise DriverMissingError(
            f"attachments at a URL need what the extra foldlog[s3] brings: {error}"
        ) from error


@contextmanager
def zstd_extra() -> Iterator[None]:
    """Say what to install if the imports inside fail."""
    try:
        yield
    except ImportError as error:
        raise DriverMissingError(
            f"compression needs what the extra foldlog[zstd] brings: {error}"
        ) from error


@contextmanager
def crypto_extra() -> Iterator[None]:
    """Say what to install if the imports inside fail."""
    try:
        yield
    except ImportError as error:
        raise DriverMissingError(
            f"encryption needs what the extra foldlog[crypto] brings: {error}"
        ) from error


def is_unavailable(error: BaseException) -> bool:
    """Tell whether the store is away, so that the same call may succeed later."""
    return isinstance(error, UnavailableError)


def translated(error: Exception) -> PersistenceError:
    """Return a driver's error as the class of `eventsourcing.persistence` that has its name."""
    names = (kind.__name__ for kind in type(error).__mro__)
    kind = next((_BY_NAME[name] for name in names if name in _BY_NAME), PersistenceError)
    return kind(str(error))
