"""Running plain statements on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldlog.persistence.postgres.connections import PostgresConnections
from foldlog.persistence.queries import Query


class PostgresStatements:
    """Statements on a PostgreSQL database."""

    def __init__(self, datastore: PostgresConnections) -> None:
        self._datastore = datastore

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        """Return what one SELECT gives."""
        return self._datastore.rows(query)

    def write(self, statements: Sequence[Query]) -> list[int]:
        """Run statements in one transaction; return how many rows each changed."""
        with self._datastore.writing() as connection:
            return [connection.execute(*query).rowcount for query in statements]
