"""What can go wrong with a store, beside what `eventsourcing.persistence` names."""

from __future__ import annotations

from typing import Literal

from eventsourcing.persistence import (
    IntegrityError,
    InterfaceError,
    OperationalError,
    PersistenceError,
)

Constraint = Literal["version", "request"]


class DuplicateRowError(IntegrityError):
    """A row was not written since one with its version or its request key is there.

    Nothing of the call was written. If a row collides by both, `constraint` is "version".
    """

    def __init__(self, constraint: Constraint) -> None:
        self.constraint: Constraint = constraint
        super().__init__(f"a row with this {constraint} is stored already")


class UnavailableError(OperationalError):
    """The store cannot be reached or broke off; whether a write took effect is unknown."""


class PoolExhausted(OperationalError):  # noqa: N818 (named like the state it reports)
    """Too many callers wait for a connection; nothing was sent."""


class SchemaError(PersistenceError):
    """The schema is not the one this release works with; the message says what to run."""


class DatabaseFileError(PersistenceError):
    """A SQLite file cannot be used: it is not ours, in use, or cannot be opened. It is untouched."""


def is_unavailable(error: BaseException) -> bool:
    """Tell whether the store is away, so that the same call may succeed later.

    The outcome of a write that failed so is unknown.
    """
    return isinstance(error, UnavailableError | InterfaceError)
