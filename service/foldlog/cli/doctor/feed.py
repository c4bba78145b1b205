"""Doctor's look at what the feed of a PostgreSQL database stands on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from foldlog.cli.doctor.finding import Finding, fault, index_lag, ok, warning

if TYPE_CHECKING:
    from psycopg import Connection

LONG_TRANSACTION_S = 60
MOST_COUNTED = 1_000_000


def schema(connection: Connection[Any]) -> Iterator[Finding]:
    """The schema is to be this release's, and the feed to go on after what is stored."""
    from foldlog.persistence.postgres.schema import (
        current_revision,
        feed_offset,
        revision_of,
        steps,
    )

    found, needed = current_revision(connection), revision_of(steps()[-1])
    if found is None or found < needed:
        yield fault(
            "schema",
            "there is none" if found is None else f"it is at {found}; this release needs {needed}",
            "The service refuses to start on it.",
            "Run: foldlog migrate",
        )
    if found is None:
        return
    if found >= needed:
        yield ok("schema", f"at {found}, the one this release works with")
    _, missing = feed_offset(connection)
    if missing:
        yield fault(
            "feed",
            f"transaction ids of this server are {missing} behind those in the log",
            "The database was restored into another server; watches and the index would miss what"
            " is written from now on, so the service refuses to start.",
            "Run: foldlog migrate",
        )
    yield from _index_lag(connection)


def _index_lag(connection: Connection[Any]) -> Iterator[Finding]:
    row = connection.execute(
        """
        SELECT count(*) FROM (
            SELECT 1 FROM foldlog_events WHERE notification_id > coalesce(
                (SELECT notification_id FROM foldlog_tracking WHERE application_name = 'sessions'),
                0)
            LIMIT %s) AS behind
        """,
        [MOST_COUNTED],
    ).fetchone()
    yield index_lag(int(row[0]) if row else 0)


def long_transactions(connection: Connection[Any]) -> Iterator[Finding]:
    """A transaction that wrote and stays open keeps later events from the feed's readers."""
    rows = connection.execute(
        """
        SELECT pid, usename, application_name, state,
               extract(epoch FROM clock_timestamp() - xact_start)::int8
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xid IS NOT NULL
          AND clock_timestamp() - xact_start > make_interval(secs => %s)
        ORDER BY xact_start
        """,
        [LONG_TRANSACTION_S],
    ).fetchall()
    for pid, user, application, state, seconds in rows:
        yield warning(
            "feed",
            f"process {pid} ({user}, {application or 'no name'}) has a transaction open"
            f" for {seconds} s, now {state}",
            "If it writes events, watches see nothing newer until it ends.",
            f"End it there, or: SELECT pg_terminate_backend({pid});",
        )


def prepared_transactions(connection: Connection[Any]) -> Iterator[Finding]:
    """A prepared transaction that its owner forgot stays open over restarts."""
    rows = connection.execute(
        """
        SELECT gid, owner, extract(epoch FROM clock_timestamp() - prepared)::int8
        FROM pg_prepared_xacts
        WHERE database = current_database()
          AND clock_timestamp() - prepared > make_interval(secs => %s)
        ORDER BY prepared
        """,
        [LONG_TRANSACTION_S],
    ).fetchall()
    for gid, owner, seconds in rows:
        yield warning(
            "feed",
            f"prepared transaction {gid!r} of {owner} has waited for {seconds} s",
            "It keeps its locks, over restarts too; events in it would be missed by watches.",
            f"Once nobody needs it: ROLLBACK PREPARED '{gid}';",
        )
