"""The tool-effect ledger on SQLite."""

from __future__ import annotations

from sqlite3 import Connection
from uuid import UUID

from foldlog.persistence.columns import id_of
from foldlog.persistence.ledger import LINES, Calls, concerned, moved_on, stored_lines

WAITING = f"SELECT {LINES} FROM foldlog_call_ledger WHERE aggregate_id = ? AND unresolved"
WHOLE = f"SELECT {LINES} FROM foldlog_call_ledger WHERE aggregate_id = ?"
INSERT = (
    "INSERT INTO foldlog_call_ledger (tenant, aggregate_id, seq, kind, call_id, to_seq, name,"
    " idempotency_key, time_s, time_ns, unresolved) VALUES (?,?,?,?,?,?,?,?,?,?,?)"
)
CHANGE = "UPDATE foldlog_call_ledger SET unresolved = ? WHERE aggregate_id = ? AND seq = ?"
FORGET = "DELETE FROM foldlog_call_ledger WHERE aggregate_id = ?"


def move_on(connection: Connection, calls: Calls, deleted: list[UUID]) -> None:
    """Take in what was logged of calls, and forget deleted sessions, in the transaction begun."""
    needed = concerned(calls)
    rows = []
    for sql, keys in ((WAITING, needed.waiting), (WHOLE, needed.whole)):
        for key in keys:
            rows += connection.execute(f"{sql} ORDER BY seq", [key.bytes]).fetchall()
    writes = moved_on(calls, stored_lines(rows, id_of))
    lines = [(tenant, key.bytes, *rest) for tenant, key, *rest in writes.lines]
    connection.executemany(INSERT, lines)
    connection.executemany(CHANGE, [(now, key.bytes, seq) for now, key, seq in writes.changed])
    connection.executemany(FORGET, [(key.bytes,) for key in deleted])
