"""The insert: one statement with binary arrays, in one round trip, on libpq's level of psycopg."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from eventsourcing.persistence import StoredEvent
from psycopg import Connection, generators, pq

from foldlog.persistence.postgres.arrays import BIGINT, BYTEA, TEXT, UUID, array, bigint, bigints
from foldlog.persistence.postgres.errors import check
from foldlog.persistence.postgres.schema import ORDINAL_BITS
from foldlog.persistence.recorder import STATEMENT_ROWS
from foldlog.persistence.rows import row_id, row_request_key, row_tenant

STATEMENT_BYTES = 16 * 1024 * 1024

# The position in the feed: the transaction's id, then the row's number in the transaction.
INSERT = b"""
    INSERT INTO foldlog_events (tenant, originator_id, originator_version, topic, state,
                                request_key, notification_id)
    SELECT r.tenant, r.originator_id, r.originator_version, r.topic, r.state, r.request_key,
           (((SELECT pg_current_xact_id()::text::bigint) + $7) << 20) | ($8 + r.ordinal - 1)
    FROM unnest($1, $2, $3, $4, $5, $6) WITH ORDINALITY
         AS r (tenant, originator_id, originator_version, topic, state, request_key, ordinal)
    RETURNING notification_id
"""
TYPES = [
    TEXT.array_oid,
    UUID.array_oid,
    BIGINT.array_oid,
    TEXT.array_oid,
    BYTEA.array_oid,
    BYTEA.array_oid,
    BIGINT.oid,
    BIGINT.oid,
]
FORMATS = [pq.Format.BINARY] * len(TYPES)
PREPARED = b"foldlog_insert_1"
Results = Sequence[pq.abc.PGresult]
_bigint = struct.Struct("!q").unpack


def prepare(connection: Connection[Any]) -> None:
    """Have the server plan the insert once, which costs it a third of a small one."""
    connection.pgconn.send_prepare(PREPARED, INSERT, TYPES)
    _answer(connection)


def _answer(connection: Connection[Any]) -> Results:
    return sound(connection.pgconn, connection.wait(generators.execute(connection.pgconn)))


def sound(connection: pq.abc.PGconn, results: Results) -> Results:
    """Return a statement's results. Raises the driver's error.

    A server or a pooler that ends the connection may say so behind the answer: then the statement
    counts as not answered.
    """
    for result in results:
        check(connection, result)
    return results


def insert(
    connection: Connection[Any],
    rows: Sequence[StoredEvent],
    xid_offset: int,
    first_ordinal: int,
    *,
    is_prepared: bool = False,
) -> int:
    """Insert rows and return the transaction's part of their notification ids."""
    send(connection, rows, xid_offset, first_ordinal, is_prepared=is_prepared)
    return place_of(_answer(connection))


def send(
    connection: Connection[Any],
    rows: Sequence[StoredEvent],
    xid_offset: int,
    first_ordinal: int,
    *,
    is_prepared: bool,
) -> None:
    """Send the insert, as far as it can be sent without waiting."""
    values = [*_arrays(rows), bigint(xid_offset), bigint(first_ordinal)]
    sending = connection.pgconn
    if is_prepared:
        sending.send_query_prepared(PREPARED, values, FORMATS, pq.Format.BINARY)
    else:
        sending.send_query_params(INSERT, values, TYPES, FORMATS, pq.Format.BINARY)


def place_of(results: Results) -> int:
    """Return the transaction's part of the notification ids that an insert gave."""
    (place,) = _bigint(results[0].get_value(0, 0) or b"")
    return int(place) >> ORDINAL_BITS << ORDINAL_BITS


def _arrays(rows: Sequence[StoredEvent]) -> list[bytes]:
    return [
        array(TEXT, [row_tenant(row).encode() for row in rows]),
        array(UUID, [row_id(row).bytes for row in rows]),
        bigints(row.originator_version for row in rows),
        array(TEXT, [row.topic.encode() for row in rows]),
        array(BYTEA, [row.state for row in rows]),
        array(BYTEA, [row_request_key(row) for row in rows]),
    ]


def insertion_order(rows: Sequence[StoredEvent]) -> list[int]:
    """Return the places of the rows by session and version.

    Transactions that insert the same keys in different orders can deadlock.
    """
    return sorted(
        range(len(rows)), key=lambda at: (row_id(rows[at]).bytes, rows[at].originator_version)
    )


def portions(rows: Sequence[StoredEvent]) -> Iterator[Sequence[StoredEvent]]:
    """Cut rows into what one statement takes: 1,000 rows and 16 MiB, or one row of any size."""
    first = size = 0
    for place, row in enumerate(rows):
        full = place - first == STATEMENT_ROWS or size + len(row.state) > STATEMENT_BYTES
        if full and place > first:
            yield rows[first:place]
            first, size = place, 0
        size += len(row.state)
    if first < len(rows):
        yield rows[first:]
