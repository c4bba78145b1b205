"""Doctor's look at a PostgreSQL database, in a session that cannot write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from foldlog.cli.doctor.compression import compression
from foldlog.cli.doctor.encryption import encryption
from foldlog.cli.doctor.feed import long_transactions, prepared_transactions, schema
from foldlog.cli.doctor.finding import Finding, fault, note, ok, warning
from foldlog.settings import Settings

if TYPE_CHECKING:
    from psycopg import Connection

CONNECT_TIMEOUT_S = 5
OLDEST_SERVER = 130_000
CLOCK_SKEW_S = 1.0
# Below its pool a process holds a listener and, now and then, a migration or a doctor.
BESIDE_POOL = 2


def postgres(settings: Settings) -> Iterator[Finding]:
    """Look at the server, its settings and what runs on it."""
    try:
        connection = _connected(settings.database_url)
    except (ImportError, OSError, ValueError) as error:
        yield _unreachable(error)
        return
    with connection:
        yield ok("database", f"reachable: {_described(connection)}")
        for look in LOOKS:
            yield from _guarded(look, connection)
        yield from connections(connection, settings)
        yield from _guarded(partial(master_keys, settings), connection)
        yield from _guarded(partial(compressed, settings), connection)


def _guarded(look: Look, connection: Connection[Any]) -> Iterator[Finding]:
    """Look, and go on with the next if the database refuses to answer."""
    import psycopg

    try:
        with connection.transaction():
            _see_all(connection)
            yield from [*look(connection)]
    except psycopg.Error as error:
        yield warning(
            "database",
            f"it refuses to tell: {' '.join(str(error).split())}",
            "This look is left out; what it would have found stays unknown.",
            "Let this user read the tables and the views of the catalogue.",
        )


def _see_all(connection: Connection[Any]) -> None:
    """See every row, as the service's own user does who follows the feed."""
    from foldlog.persistence.postgres.roles import SYSTEM

    if _is_bound(connection):
        connection.execute("SELECT set_config('role', %s, true)", [SYSTEM])


def _is_bound(connection: Connection[Any]) -> bool:
    """Tell whether row-level security binds this user; False where there is no schema."""
    bound = (
        "SELECT row_security_active(t) FROM to_regclass('foldlog_events') AS t WHERE t IS NOT NULL"
    )
    return connection.execute(bound).fetchone() == (True,)


def row_security(connection: Connection[Any]) -> Iterator[Finding]:
    """The database keeps tenants apart only for a user whom it binds."""
    connection.execute("RESET ROLE")
    if _is_bound(connection):
        yield ok(
            "row-level security", f"binds {connection.info.user}, as whom the service connects"
        )
    else:
        yield note(
            "row-level security",
            f"does not bind {connection.info.user}, who owns the tables or may pass by it",
            "Only the service keeps tenants apart; with one tenant that is all there is to do.",
            "Serve as a user let in with: foldlog migrate --service-user NAME",
        )


def master_keys(settings: Settings, connection: Connection[Any]) -> Iterator[Finding]:
    """The master keys open what is stored."""
    if connection.execute("SELECT to_regclass('foldlog_session_keys') IS NULL").fetchone() == (
        True,
    ):
        yield from encryption(settings, lambda _: [(None,)])  # it is to be migrated first
        return
    yield from encryption(settings, lambda query: connection.execute(*query).fetchall())


def compressed(settings: Settings, connection: Connection[Any]) -> Iterator[Finding]:
    """What is compressed can be read."""
    if connection.execute("SELECT to_regclass('foldlog_events') IS NULL").fetchone() == (True,):
        yield from compression(settings, lambda _: [])  # it is to be migrated first
        return
    yield from compression(settings, lambda query: connection.execute(*query).fetchall())


def _connected(url: str) -> Connection[Any]:
    """Connect for reading only. Not by a startup option: poolers refuse those."""
    import psycopg

    try:
        connection = psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S, prepare_threshold=None)
    except psycopg.Error as error:
        raise ConnectionError(str(error)) from error
    connection.read_only = True
    return connection


def _unreachable(error: Exception) -> Finding:
    return fault(
        "database",
        f"cannot be reached: {' '.join(str(error).split())}",
        "Nothing can be read or written.",
        "Start the server, or correct FOLDLOG_DATABASE_URL; test with: psql URL -c 'select 1'",
    )


def _described(connection: Connection[Any]) -> str:
    info = connection.info
    return f"PostgreSQL {_show(connection, 'server_version')}, database {info.dbname}"


def _show(connection: Connection[Any], name: str) -> str:
    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
    return str(row[0]) if row else ""


def server_version(connection: Connection[Any]) -> Iterator[Finding]:
    """Old servers lack 64-bit transaction ids, which order the feed."""
    if connection.info.server_version < OLDEST_SERVER:
        yield fault(
            "database",
            f"PostgreSQL {_show(connection, 'server_version')} is too old",
            "The feed is ordered by 64-bit transaction ids, which came with PostgreSQL 13.",
            "Upgrade PostgreSQL.",
        )


def durability(connection: Connection[Any]) -> Iterator[Finding]:
    """An acknowledged write is to be on disk."""
    losses = {
        "fsync": "A crash of the machine can destroy the whole database.",
        "full_page_writes": "A crash of the machine can leave half-written pages.",
        "synchronous_commit": "Acknowledged events can be lost when the server crashes.",
    }
    unsafe = {name: why for name, why in losses.items() if _show(connection, name) == "off"}
    for name, why in unsafe.items():
        yield fault("durability", f"{name} is off", why, _turned_on(connection, name))
    if not unsafe:
        yield ok("durability", "fsync, full_page_writes and synchronous_commit are on")


def _turned_on(connection: Connection[Any], name: str) -> str:
    reload = "SELECT pg_reload_conf();"
    fix = f"As superuser: ALTER SYSTEM SET {name} = on; {reload}"
    if name != "synchronous_commit":
        return fix
    database, user = connection.info.dbname, connection.info.user
    return (
        f"{fix} Look also for an override: ALTER DATABASE {database} RESET {name};"
        f" ALTER ROLE {user} RESET {name};"
    )


def encoding(connection: Connection[Any]) -> Iterator[Finding]:
    """Ids and labels are any Unicode text."""
    found = _show(connection, "server_encoding")
    if found != "UTF8":
        yield fault(
            "database",
            f"the database's encoding is {found}",
            "Session ids and labels may be any Unicode text.",
            "Make a new one: createdb --encoding=UTF8 --template=template0 NAME",
        )


def clock(connection: Connection[Any]) -> Iterator[Finding]:
    """Events take this process's time, other things the database's."""
    before = time.time()
    row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    after = time.time()
    skew = float(row[0]) - (before + after) / 2 if row else 0.0
    if abs(skew) <= CLOCK_SKEW_S + (after - before) / 2:
        yield ok("clock", "this machine and the database agree")
        return
    side = "ahead of" if skew > 0 else "behind"
    yield warning(
        "clock",
        f"the database's clock is {abs(skew):.1f} s {side} this machine's",
        "Times in the log come from several machines and will look out of order.",
        "Let every machine keep its clock by NTP.",
    )


def pooler(connection: Connection[Any]) -> Iterator[Finding]:
    """Behind a pooler the backend is another one than the client was told of."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    if row and row[0] != connection.info.backend_pid:
        yield note(
            "database",
            "a connection pooler stands before the server",
            "In transaction mode it delivers no notifications; the feed then only polls.",
            "Set FOLDLOG_LISTEN_DATABASE_URL to the server's own address.",
        )


def connections(connection: Connection[Any], settings: Settings) -> Iterator[Finding]:
    """A pool that cannot be filled makes calls wait and fail."""
    row = connection.execute(
        """
        SELECT current_setting('max_connections')::int
               - current_setting('superuser_reserved_connections')::int,
               (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
        """
    ).fetchone()
    usable, used = row or (0, 0)
    wanted = settings.pool_size + BESIDE_POOL
    what = f"{used} of {usable} connections in use; one service process takes up to {wanted}"
    if wanted <= usable - used:
        yield ok("connections", what)
    else:
        yield warning(
            "connections",
            what,
            "A process that gets no connection answers UNAVAILABLE or RESOURCE_EXHAUSTED.",
            "Lower FOLDLOG_POOL_SIZE, raise max_connections, or put PgBouncer before the server."
            " Those in use may be this service's own.",
        )


Look = Callable[["Connection[Any]"], Iterator[Finding]]
LOOKS: tuple[Look, ...] = (
    server_version,
    durability,
    encoding,
    clock,
    pooler,
    row_security,
    schema,
    long_transactions,
    prepared_transactions,
)
