"""PostgreSQL servers and databases that faults are injected into."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from foldlog.persistence.migrate import migrate
from psycopg import sql

from tests.cluster import Server

_numbers = itertools.count(1)

OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = %s AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A migrated database of one server."""

    server: Server
    name: str

    @property
    def url(self) -> str:
        """Its URL, over TCP."""
        return self.server.url(self.name)

    def url_through(self, port: int) -> str:
        """Return its URL through what listens on another port."""
        return self.url.replace(f":{self.server.port}/", f":{port}/")

    async def tell(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement in the maintenance database, and return what it gives."""
        return await asyncio.to_thread(self._tell, statement, values)

    def _tell(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    async def cut_all(self) -> None:
        """End every connection to it."""
        await self.tell(OTHERS, self.name)

    async def set(self, name: str, value: str | None) -> None:
        """Set what its sessions begin with, or leave it as it was."""
        change = sql.SQL("RESET {0}") if value is None else sql.SQL("SET {0} = {1}")
        begin = sql.SQL("ALTER DATABASE {} ").format(sql.Identifier(self.name))
        statement = begin + change.format(sql.Identifier(name), sql.Literal(value))
        await self.tell(statement.as_string())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
        """Open a transaction in it beside the service; it is rolled back."""
        async with await psycopg.AsyncConnection.connect(self.url) as connection:
            yield connection
            await connection.rollback()


@contextmanager
def fresh_database(server: Server, *, tablespace: str = "pg_default") -> Iterator[Database]:
    """Lend a new database."""
    database = Database(server, f"faults_{next(_numbers)}")
    server.execute(f"CREATE DATABASE {database.name} TABLESPACE {tablespace}")
    migrate(database.url)
    try:
        yield database
    finally:
        server.execute(f"DROP DATABASE {database.name} WITH (FORCE)")


async def tell_server(server: Server, setting: str, value: str) -> None:
    """Change a setting of a running server."""
    for statement in (f"ALTER SYSTEM SET {setting} = '{value}'", "SELECT pg_reload_conf()"):
        await asyncio.to_thread(server.execute, statement)
