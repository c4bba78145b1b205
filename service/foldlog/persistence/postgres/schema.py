"""Whether a PostgreSQL database has the schema that this release works with."""

from __future__ import annotations

from typing import Any

import psycopg

from foldlog.persistence.errors import SchemaError
from foldlog.persistence.scripts import migrations

VERSION_TABLE = "foldlog_version"
ORDINAL_BITS = 20

VERSION = f"SELECT version_num FROM {VERSION_TABLE}"
CLUSTER = """
    SELECT (SELECT xid_offset FROM foldlog_feed),
           (SELECT notification_id FROM foldlog_events ORDER BY notification_id DESC LIMIT 1),
           pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""


def steps() -> list[str]:
    """Return the names of this release's migrations in order."""
    folder = migrations("postgres") / "versions"
    names = (step.name for step in folder.iterdir() if step.name.endswith(".py"))
    return sorted(name.removesuffix(".py") for name in names)


def revision_of(step: str) -> str:
    """Return the revision that a migration leads to."""
    return step.partition("_")[0]


def check_schema(connection: psycopg.Connection[tuple[Any, ...]]) -> int:
    """Return the offset of the feed's transaction ids. Raises SchemaError.

    A newer schema is accepted: migrations are made so that the release before works on it.
    """
    try:
        revision, needed = current_revision(connection), revision_of(steps()[-1])
    except psycopg.errors.InsufficientPrivilege as error:
        raise SchemaError(
            f"{connection.info.user!r} has no rights here: as the owner, run"
            " `foldlog migrate --service-user` with its name"
        ) from error
    if revision is None or revision < needed:
        raise SchemaError(
            f"the database's schema is at revision {revision or 'none'} and this release needs"
            f" {needed}: run `foldlog migrate`"
        )
    offset, missing = feed_offset(connection)
    if missing:
        raise SchemaError(
            "the database was moved here from a server with higher transaction ids, so that the"
            " feed would stand still: run `foldlog migrate`"
        )
    return offset


def current_revision(connection: psycopg.Connection[tuple[Any, ...]]) -> str | None:
    """Return the revision of the database, or None for one without our schema."""
    there = connection.execute("SELECT to_regclass(%s)", [VERSION_TABLE]).fetchone()
    row = connection.execute(VERSION).fetchone() if there and there[0] else None
    return row[0] if row else None


def feed_offset(connection: psycopg.Connection[tuple[Any, ...]]) -> tuple[int, int]:
    """Return the feed's offset, and by how much it is too small.

    A notification id is (transaction id + offset) << 20 | ordinal. A server's transaction ids only
    rise, but after a dump is restored into another server they may begin below those of the rows.
    """
    row = connection.execute(CLUSTER).fetchone()
    assert row is not None
    offset, last, next_xid = row
    return offset, max(0, ((last or 0) >> ORDINAL_BITS) + 1 - (next_xid + offset))
