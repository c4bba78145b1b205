"""Somebody who writes to the database behind the service's back, and knows how rows are made."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import psycopg
from foldlog.application.identity import aggregate_id
from foldlog.application.seal import GENESIS, chain_value, commitment, unsealed
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact

from tests.postgres import owner_url

COLUMNS = "originator_version, topic, state, notification_id, tenant, request_key"
SQLITE = "sqlite:///"


@dataclass(frozen=True)
class RawRow:
    """A row of the event table as the database has it."""

    version: int
    topic: str
    state: bytes
    place: int
    tenant: str
    request_key: bytes | None

    @property
    def envelope(self) -> Envelope:
        """Its state, decoded."""
        return Envelope.FromString(self.state)

    def changed(self, change: Callable[[Envelope], object]) -> RawRow:
        """Return it with another envelope."""
        envelope = self.envelope
        change(envelope)
        return replace(self, state=envelope.SerializeToString())


class Attacker:
    """Reads and writes rows with nothing but SQL."""

    def __init__(self, database_url: str) -> None:
        self.is_sqlite = database_url.startswith(SQLITE)
        self._url = database_url if self.is_sqlite else owner_url(database_url)

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        if self.is_sqlite:
            connection: Any = sqlite3.connect(self._url.removeprefix(SQLITE), timeout=30)
        else:
            connection = psycopg.connect(self._url)
        try:
            yield connection
            connection.commit()
        finally:
            connection.close()

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement with %s for its parameters, and return what it gives."""
        with self._connection() as connection:
            if self.is_sqlite:
                statement = statement.replace("%s", "?")
            cursor = connection.execute(statement, parameters)
            return [] if cursor.description is None else list(cursor.fetchall())

    def key(self, session_id: str) -> object:
        """Return a session's aggregate id as the database has it."""
        id_ = aggregate_id("default", session_id)
        return id_.bytes if self.is_sqlite else id_

    def rows(self, session_id: str) -> list[RawRow]:
        """Return a session's own rows."""
        found = self.sql(
            f"SELECT {COLUMNS} FROM foldlog_events WHERE originator_id = %s"
            " ORDER BY originator_version",
            self.key(session_id),
        )
        return [
            RawRow(v, topic, bytes(state), place, tenant, None if key is None else bytes(key))
            for v, topic, state, place, tenant, key in found
        ]

    def cut(self, session_id: str, from_version: int, to_version: int = 2**60) -> None:
        """Delete rows."""
        self.sql(
            "DELETE FROM foldlog_events WHERE originator_id = %s"
            " AND originator_version >= %s AND originator_version <= %s",
            self.key(session_id),
            from_version,
            to_version,
        )

    def put(self, session_id: str, *rows: RawRow) -> None:
        """Write rows in the place of those with their versions, or beside them."""
        for row in rows:
            self.cut(session_id, row.version, row.version)
            self.sql(
                f"INSERT INTO foldlog_events (originator_id, {COLUMNS})"
                " VALUES (%s, %s, %s, %s, %s, %s, %s)",
                self.key(session_id),
                *(row.version, row.topic, row.state, row.place, row.tenant, row.request_key),
            )

    def next_place(self) -> int:
        """Return a place in the feed behind every row."""
        ((last,),) = self.sql("SELECT max(notification_id) FROM foldlog_events")
        return int(last) + 1


def rehashed(session_id: str, rows: Sequence[RawRow]) -> list[RawRow]:
    """Return rows with the commitments and chain values that their contents call for."""
    id_: UUID = aggregate_id("default", session_id)
    key = StoredFact.FromString(rows[0].envelope.body).origin.key
    chain, made = GENESIS, []
    for row in rows:
        envelope = row.envelope
        envelope.commitment = commitment(key, envelope.body)
        chain = chain_value(chain, id_, row.version, row.topic, unsealed(envelope))
        envelope.chain = chain
        made.append(replace(row, state=envelope.SerializeToString()))
    return made
