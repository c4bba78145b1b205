"""The tool-effect ledger on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg

from foldlog.persistence.ledger import LINES, Calls, concerned, moved_on, stored_lines

NEEDED = f"""
    SELECT {LINES} FROM foldlog_call_ledger
    WHERE aggregate_id = ANY(%s::uuid[]) AND unresolved
    UNION ALL
    SELECT {LINES} FROM foldlog_call_ledger WHERE aggregate_id = ANY(%s::uuid[])
    ORDER BY aggregate_id, seq
"""
INSERT = """
    INSERT INTO foldlog_call_ledger (tenant, aggregate_id, seq, kind, call_id, to_seq, name,
        idempotency_key, time_s, time_ns, unresolved)
    SELECT * FROM unnest(%s::text[], %s::uuid[], %s::bigint[], %s::smallint[], %s::bytea[],
        %s::bigint[], %s::bytea[], %s::bytea[], %s::bigint[], %s::int[], %s::bool[])
"""
CHANGE = """
    UPDATE foldlog_call_ledger l SET unresolved = n.unresolved
    FROM unnest(%s::bool[], %s::uuid[], %s::bigint[]) AS n (unresolved, id, seq)
    WHERE l.aggregate_id = n.id AND l.seq = n.seq
"""
FORGET = "DELETE FROM foldlog_call_ledger WHERE aggregate_id = ANY(%s::uuid[])"

Connection = psycopg.Connection[tuple[Any, ...]]


def move_on(connection: Connection, calls: Calls, deleted: list[UUID]) -> None:
    """Take in what was logged of calls, and forget deleted sessions, in the transaction begun."""
    if calls:
        needed = concerned(calls)
        keys = [list(needed.waiting), list(needed.whole)]
        rows = connection.execute(NEEDED, keys, binary=True).fetchall()
        writes = moved_on(calls, stored_lines(rows, lambda key: key))
        _run(connection, INSERT, writes.lines)
        _run(connection, CHANGE, writes.changed)
    if deleted:
        connection.execute(FORGET, [deleted])


def _run(connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> None:
    if rows:
        connection.execute(sql, [list(column) for column in zip(*rows, strict=True)])
