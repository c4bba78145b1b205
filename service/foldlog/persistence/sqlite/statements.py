"""Running plain statements on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldlog.persistence.queries import Query
from foldlog.persistence.sqlite.connections import SQLiteConnections


class SQLiteStatements:
    """Statements on a SQLite database."""

    def __init__(self, datastore: SQLiteConnections) -> None:
        self._datastore = datastore

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        """Return what one SELECT gives."""
        return self._datastore.rows(*query)

    def write(self, statements: Sequence[Query]) -> list[int]:
        """Run statements in one transaction; return how many rows each changed."""
        with self._datastore.writer() as connection:
            return [
                connection.execute(sql.replace("%s", "?"), parameters).rowcount
                for sql, parameters in statements
            ]
