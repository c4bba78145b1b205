"""Running the migrations of PostgreSQL, under Alembic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from foldlog.persistence.postgres.connections import with_defaults
from foldlog.persistence.postgres.errors import as_ours, translation
from foldlog.persistence.postgres.roles import let_serve, make_roles
from foldlog.persistence.postgres.schema import (
    VERSION_TABLE,
    current_revision,
    feed_offset,
    revision_of,
    steps,
)
from foldlog.persistence.scripts import migrations

# One lock of the database for everybody who migrates it. Held to the end of the transaction, not of
# the session, so that it works through a transaction pool too.
LOCK = "SELECT pg_advisory_xact_lock(%s)"
LOCK_KEY = int.from_bytes(b"foldlog", "big")
RAISE_OFFSET = "UPDATE foldlog_feed SET xid_offset = xid_offset + %s"
FEED_OFFSET = "feed_offset"

if TYPE_CHECKING:
    from foldlog.persistence.migrate import ServiceUser

Raw = psycopg.Connection[tuple[Any, ...]]


def migrate(
    database_url: str, partitions: int, service_user: ServiceUser | None = None
) -> list[str]:
    """Apply what is pending, all in one transaction, and return its names."""
    with _transaction(database_url) as connection:
        raw = _raw(connection)
        raw.execute(LOCK, [LOCK_KEY])
        names = _missing(raw)
        _run_alembic(connection, partitions)
        _, missing = feed_offset(raw)
        if missing:
            raw.execute(RAISE_OFFSET, [missing])
            names.append(FEED_OFFSET)
        if service_user is not None:
            let_serve(raw, service_user.name, service_user.password)
        return names


def roles(database_url: str) -> None:
    """Make the roles of row-level security, which belong to the server."""
    with translation(), psycopg.connect(with_defaults(database_url)) as raw:
        make_roles(raw)


def pending(database_url: str) -> list[str]:
    """Return the names of what would be applied."""
    with translation(), psycopg.connect(with_defaults(database_url), autocommit=True) as raw:
        names = _missing(raw)
        if current_revision(raw) is not None and feed_offset(raw)[1]:
            names.append(FEED_OFFSET)
        return names


def _missing(raw: Raw) -> list[str]:
    revision = current_revision(raw) or ""
    return [step for step in steps() if revision_of(step) > revision]


@contextmanager
def _transaction(database_url: str) -> Iterator[Connection]:
    conninfo = with_defaults(database_url)
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(conninfo), poolclass=NullPool
    )
    try:
        with translation(), engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        raise as_ours(cast("psycopg.Error", error.orig)) from error


def _raw(connection: Connection) -> Raw:
    raw = connection.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    return raw


def _run_alembic(connection: Connection, partitions: int) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations("postgres")).replace("%", "%%"))
    config.attributes.update(
        connection=connection, version_table=VERSION_TABLE, partitions=partitions
    )
    command.upgrade(config, "head")
