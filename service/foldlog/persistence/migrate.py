"""Bringing a database's schema up to date."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from foldlog.persistence.errors import postgres_extra
from foldlog.persistence.store import POSTGRES, SQLITE


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """A PostgreSQL user whom the service connects as, and whom row-level security binds."""

    name: str
    password: str = field(default="", repr=False)


def migrate(
    database_url: str, *, partitions: int = 0, service_user: ServiceUser | None = None
) -> list[str]:
    """Apply what is pending, in order, and return its names.

    Several runs at once wait for each other. `partitions` counts only where the tables are made:
    with it, events and checkpoints are partitioned by hash of their session. `service_user` is let
    serve, and made if missing; only PostgreSQL has such. Raises ValueError for a URL of another
    kind, and DriverMissingError.
    """
    if database_url.startswith(SQLITE):
        if service_user is not None:
            raise ValueError("SQLite has no users; whoever may read the file reads it all")
        return _migrate_file(Path(database_url.removeprefix(SQLITE)))
    _check_is_postgres(database_url)
    with postgres_extra():
        from foldlog.persistence.postgres.migration import migrate

    return migrate(database_url, partitions, service_user)


def make_roles(database_url: str) -> None:
    """Make the roles of row-level security on a PostgreSQL server, and nothing else.

    Raises ValueError for a URL of another kind, SchemaError, and DriverMissingError.
    """
    if not database_url.startswith(POSTGRES):
        raise ValueError("only PostgreSQL has roles: a URL that begins with postgresql://")
    with postgres_extra():
        from foldlog.persistence.postgres.migration import roles

    roles(database_url)


def pending(database_url: str) -> list[str]:
    """Return the names of what `migrate` would apply."""
    if database_url.startswith(SQLITE):
        return _pending_of_file(Path(database_url.removeprefix(SQLITE)))
    _check_is_postgres(database_url)
    with postgres_extra():
        from foldlog.persistence.postgres.migration import pending

    return pending(database_url)


def _check_is_postgres(database_url: str) -> None:
    if not database_url.startswith(POSTGRES):
        raise ValueError("a database URL begins with sqlite:/// or postgresql://")


def _migrate_file(path: Path) -> list[str]:
    from foldlog.persistence.sqlite.connections import SQLiteConnections

    names = _pending_of_file(path)
    SQLiteConnections(str(path), readers=1).close()
    return names


def _pending_of_file(path: Path) -> list[str]:
    from foldlog.persistence.sqlite.connections import inspect
    from foldlog.persistence.sqlite.schema import pending, steps

    if not path.exists() or path.stat().st_size == 0:
        return [step.name.removesuffix(".sql") for step in steps()]
    with closing(inspect(path)) as connection:
        return [step.name.removesuffix(".sql") for step in pending(connection, str(path))]
