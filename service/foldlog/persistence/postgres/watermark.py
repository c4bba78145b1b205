"""Up to where the feed can be read without ever missing a row.

A row's place in the feed begins with its transaction's id, and transactions commit in any order. So
a reader stops below the oldest transaction that may still be writing. To find it:

1. Take a snapshot; its xmax is one past the newest transaction that has ended. Every id below xmax
   was assigned before, and the server publishes an id in its backend's entry before it assigns the
   next (GetNewTransactionId in src/backend/access/transam/varsup.c).
2. In a later statement, read which ids the backends of this database show. An id below xmax that is
   not shown has ended by then: a backend clears its entry only after its commit counts
   (ProcArrayEndTransaction, called after RecordTransactionCommit).
3. In a third statement, so on a new snapshot, read rows below the smallest of them and xmax. All
   those transactions have ended, so either their rows are seen or they never were.

Each step is a statement of its own, in autocommit: pg_stat_activity is read once per transaction.
Backends of other roles show their ids as well. Other databases do not matter, since none of their
transactions writes here; neither does autovacuum. Not covered are a write of ours that is left in a
prepared transaction (our writers prepare none), and asynchronous commits that a crash loses after
they were read: the server gives their ids again.
"""

from __future__ import annotations

from typing import Any

import psycopg

from foldlog.persistence.postgres.schema import ORDINAL_BITS

ENDED = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
# The function under the view pg_stat_activity, whose joins cost three times as much.
IN_FLIGHT = """
    SELECT backend_xid::text::bigint FROM pg_stat_get_activity(NULL)
    WHERE backend_xid IS NOT NULL
      AND datid = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND backend_type IS DISTINCT FROM 'autovacuum worker'
"""
HALF = 1 << 31


def feed_stop(connection: psycopg.Connection[tuple[Any, ...]], xid_offset: int) -> int:
    """Return the last notification id that may be read."""
    row = connection.execute(ENDED).fetchone()
    assert row is not None
    shown = [int(xid) for (xid,) in connection.execute(IN_FLIGHT)]
    return ((oldest(row[0], shown) + xid_offset) << ORDINAL_BITS) - 1


def oldest(upper: int, shown: list[int]) -> int:
    """Return the smallest of `upper` and the transaction ids shown, which lack their high bits.

    Ids in flight lie within 2**31 of each other.
    """
    full = (upper + (xid - upper + HALF) % (2 * HALF) - HALF for xid in shown)
    return min([upper, *full])
