"""Connections whose transactions see the rows of one tenant, or of all, by row-level security."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from foldlog.persistence.postgres.connections import PooledConnection, PostgresConnections
from foldlog.persistence.queries import Query

# Local to the transaction, so that it works through a pooler in transaction mode.
TAKE = "SELECT set_config('role', %s, true), set_config('foldlog.tenant', %s, true)"


@dataclass(frozen=True, slots=True)
class Scope:
    """The role that a transaction takes, and the tenant it is about."""

    role: str
    tenant: str = ""


class ScopedConnections(PostgresConnections):
    """The connections of a pool, used within a scope.

    What `connection` and `committing` lend has taken no role: it can commit events and no more.
    """

    def __init__(self, whole: PostgresConnections, scope: Scope) -> None:
        self.__dict__.update(vars(whole))
        self._whole = whole
        self._taking = (TAKE, [scope.role, scope.tenant])

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        """Return what one SELECT gives, in one round trip."""
        statement, parameters = query
        with self.connection() as connection, connection.pipeline():
            # Up to the end of the pipeline it is one transaction, without a BEGIN.
            connection.execute(*self._taking)
            return connection.execute(statement, parameters, binary=True).fetchall()

    @contextmanager
    def connection(self) -> Iterator[PooledConnection]:
        """Lend a connection in autocommit mode, outside the scope."""
        with self._whole.connection() as connection:
            yield connection

    @contextmanager
    def committing(self) -> Iterator[PooledConnection]:
        """Lend a connection for one statement that commits, outside the scope."""
        with self._whole.committing() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[PooledConnection]:
        """Lend a connection inside a transaction in the scope."""
        with self._whole.writing() as connection:
            connection.execute(*self._taking)
            yield connection

    @contextmanager
    def inserting(self) -> Iterator[PooledConnection]:
        """Lend a connection inside a transaction outside the scope."""
        with self._whole.inserting() as connection:
            yield connection
