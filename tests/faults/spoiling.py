"""Spoils what is stored: any column of any row of some sessions gets any value at all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from sqlite3 import DatabaseError
from typing import Any, Final
from uuid import UUID

import psycopg
from foldlog.application.identity import aggregate_id
from foldlog.internal.v1.storage_pb2 import Envelope

from tests.faults.ground import Ground
from tests.faults.oddities import JSON, TEXTS, Oddities
from tests.integrity.attacker import Attacker

MOST_BYTES: Final = 200_000
NUMBERS: Final = (-1, 0, 1, 2, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63))
# All but what would only fail to be what was committed to.
SAID: Final = tuple(
    field for field in Envelope.DESCRIPTOR.fields if field.name not in ("chain", "commitment")
)
# SQLite keeps a value of any kind in any column.
OF_ANY_KIND: Final = (None, -1, 2**63 - 1, 1.5, b"", b"\xff", "", "x")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: whose its rows are, what tells one from another, and what is spoilt in them."""

    name: str
    owner: str
    key: Sequence[str]
    columns: Sequence[str]
    share: int = 1


def _table(name: str, key: str, columns: str, share: int = 1, owner: str = "aggregate_id") -> Table:
    return Table(name, owner, key.split(), columns.split(), share)


# Without places in the feed, which are everybody's, and without names of master keys: a service
# does not start where it lacks one.
TABLES: Final = (
    _table(
        "foldlog_events",
        "originator_id originator_version",
        "state state state tenant originator_id originator_version topic request_key",
        share=8,
        owner="originator_id",
    ),
    _table(
        "foldlog_checkpoints",
        "originator_id originator_version",
        "state state state topic tenant originator_version",
        share=3,
        owner="originator_id",
    ),
    _table(
        "foldlog_sessions",
        "aggregate_id",
        "tenant aggregate_id session_id parent_session_id parent_at_seq labels metadata_json"
        " next_seq create_s create_ns update_s update_ns deleted",
        share=2,
    ),
    _table(
        "foldlog_session_terms",
        "aggregate_id source term",
        "tenant aggregate_id source term create_s create_ns",
    ),
    _table(
        "foldlog_lineage",
        "aggregate_id ancestor_id",
        "aggregate_id ancestor_id to_version",
    ),
    _table(
        "foldlog_call_ledger",
        "aggregate_id seq",
        "tenant aggregate_id seq kind call_id to_seq name idempotency_key time_s time_ns"
        " unresolved",
        share=2,
    ),
    _table(
        "foldlog_objects",
        "tenant sha256",
        "tenant sha256 size_bytes created_ns touched_ns file chunks data wrapped",
        share=2,
        owner="sha256",
    ),
    _table(
        "foldlog_object_references",
        "aggregate_id version sha256",
        "tenant sha256 aggregate_id version seq dropped",
    ),
    _table(
        "foldlog_session_keys",
        "aggregate_id",
        "tenant aggregate_id wrapped",
    ),
)


class Spoiler:
    """Changes rows of the grounds and of their forks, and no others."""

    def __init__(self, attacker: Attacker, oddities: Oddities) -> None:
        self._attacker = attacker
        self._oddities = oddities
        self._random: Random = oddities.random

    def spoil(self, grounds: Sequence[Ground], times: int) -> list[str]:
        """Spoil so many values, and return what was done; what the database refuses is not."""
        done = list[str]()
        tables = [table for table in TABLES for _ in range(table.share)]
        for _ in range(100 * times):
            if len(done) == times:
                break
            if said := self._spoil(self._random.choice(tables), grounds):
                done.append(said)
        return done

    def _spoil(self, table: Table, grounds: Sequence[Ground]) -> str:
        column = self._random.choice(table.columns)
        rows = self._rows(table, column, grounds)
        if not rows:
            return ""
        *key, old = self._random.choice(rows)
        new = self._value(old, column)
        where = " AND ".join(f"{name} = %s" for name in table.key)
        with suppress(DatabaseError, psycopg.Error, OverflowError):
            self._attacker.sql(f"UPDATE {table.name} SET {column} = %s WHERE {where}", new, *key)
            return f"{table.name}.{column} {old!r:.60} -> {new!r:.60}"
        return ""

    def _rows(self, table: Table, column: str, grounds: Sequence[Ground]) -> list[tuple[Any, ...]]:
        owners = [owner for ground in grounds for owner in self._owners(table, ground)]
        marks = ", ".join("%s" for _ in owners)
        return self._attacker.sql(
            f"SELECT {', '.join(table.key)}, {column} FROM {table.name}"
            f" WHERE {table.owner} IN ({marks}) ORDER BY {', '.join(table.key)}",
            *owners,
        )

    def _owners(self, table: Table, ground: Ground) -> list[object]:
        if table.owner == "sha256":
            return [ground.digest]
        return [self._attacker.key(each) for each in (ground.session_id, ground.child_id)]

    def _value(self, old: object, column: str) -> object:
        if self._attacker.is_sqlite and self._random.random() < 0.1:
            return self._random.choice(OF_ANY_KIND)
        if column == "state" and isinstance(old, bytes) and self._random.random() < 0.5:
            return self._state(old)
        match old:
            case bytes():
                return self._oddities.damaged(old)[:MOST_BYTES]
            case bool():
                return not old
            case int():
                return self._random.choice((*NUMBERS, old - 1, old + 1))
            case UUID():
                return self._random.choice((aggregate_id("default", "another"), UUID(int=0)))
            case str():
                return self._text()
        return self._random.choice((None, 0, self._random.randbytes(32), self._text()))

    def _text(self) -> str:
        texts = [each if isinstance(each, str) else each.decode() for each in TEXTS]
        chosen = self._random.choice((*texts, *JSON))
        return chosen if self._attacker.is_sqlite else chosen.replace("\0", "")

    def _state(self, old: bytes) -> bytes:
        """Return an envelope that says something else in a field or two; most of these decode."""
        said = [self._oddities.field(self._random.choice(SAID)) for _ in range(2)]
        return old + b"".join(said)
