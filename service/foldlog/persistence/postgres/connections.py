"""The connections to PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

import psycopg
from eventsourcing.postgres import PostgresDatastore
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from foldlog.persistence.errors import PoolExhausted, UnavailableError
from foldlog.persistence.postgres.bounded import (
    BoundedConnection,
    patience_s,
    set_timeouts,
)
from foldlog.persistence.postgres.errors import translation
from foldlog.persistence.postgres.hints import PostgresHints
from foldlog.persistence.postgres.schema import check_schema
from foldlog.persistence.queries import Query
from foldlog.persistence.timeouts import Timeouts

POOL_TIMEOUT_S = 5.0
RECONNECT_S = 2.0
WAITING_PER_CONNECTION = 16
FRESH_S = 1.0
CHECK_S = 2.0
UNANSWERED_AT_MOST = 4

HOW: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}

# What a URL does not say: a server that went away without a word is noticed within seconds.
DEFAULTS: dict[str, Any] = {
    "application_name": "foldlog",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

# A page of a log or of the feed is to be read from the index in order and to cost what it returns,
# and so is a look-up. Where statistics lag behind, the planner sorts all that follows, for each
# page, or reads a whole table to join it with a few rows. Through a transaction pool this reaches
# only some of its connections.
PLANS = "SELECT " + ", ".join(
    f"set_config('{name}', 'off', false)"
    for name in ("enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
)
SERVER_PROCESS = "SELECT pg_backend_pid()"

# Which of these server processes still have a transaction.
UNENDED = """
    SELECT pid FROM pg_stat_get_activity(NULL) WHERE pid = ANY(%s) AND backend_xid IS NOT NULL
"""


class PooledConnection(BoundedConnection):
    """A connection that knows when it was last given back, and whether a pooler stands behind it.

    What is prepared by name on a connection of its own stays there; behind a pooler in transaction
    mode the next statement may reach another server process.
    """

    returned_at = 0.0
    has_prepared = False
    server_process = 0

    @property
    def is_direct(self) -> bool:
        """Whether it always reaches the same server process."""
        return self.server_process != 0


class PostgresConnections(PostgresDatastore):
    """A bounded pool in place of the package's, fit for PgBouncer in transaction mode too.

    Opening checks the schema.
    """

    def __init__(
        self, url: str, pool_size: int = 8, hint_url: str = "", timeouts: Timeouts | None = None
    ) -> None:
        conninfo = with_defaults(url)
        self.schema = "public"
        self.originator_id_type = "uuid"
        self.single_row_tracking = True
        self.enable_db_functions = False
        self.lock_timeout = 0
        self.db_type_names = set()
        self.timeouts = timeouts or Timeouts()
        self._patience_s = patience_s(self.timeouts)
        self._lost_at = 0.0
        self._size = pool_size
        self._lent: set[PooledConnection] = set()
        self._unanswered: set[int] = set()
        self._pool = ConnectionPool(
            conninfo,
            connection_class=PooledConnection,
            kwargs=HOW,
            min_size=min(2, pool_size),
            max_size=pool_size,
            max_waiting=WAITING_PER_CONNECTION * pool_size,
            timeout=POOL_TIMEOUT_S,
            reconnect_timeout=RECONNECT_S,
            configure=self._configure,
            check=self._check,
            open=False,
            name="foldlog",
        )
        self.hints = PostgresHints(with_defaults(hint_url or url), self.execute)
        self.xid_offset = self._opened(conninfo)

    def _opened(self, conninfo: str) -> int:
        # Apart from the pool, which tells only after a while that it cannot connect, and not why.
        with translation(), BoundedConnection.connect(conninfo, **HOW) as connection:
            offset = check_schema(connection)
        self._pool.open()
        return offset

    def _configure(self, connection: PooledConnection) -> None:
        connection.patience_s = CHECK_S
        connection.execute(PLANS)
        connection.execute(set_timeouts(self.timeouts))
        # A pooler gives its clients process ids of its own making.
        row = connection.execute(SERVER_PROCESS).fetchone()
        if row == (connection.info.backend_pid,):
            connection.server_process = connection.info.backend_pid
        connection.patience_s = self._patience_s

    @contextmanager
    def connection(self) -> Iterator[PooledConnection]:
        """Lend a connection in autocommit mode. Raises PoolExhausted and UnavailableError."""
        with translation(), self._lending() as connection:
            try:
                yield connection
            except psycopg.errors.ReadOnlySqlTransaction:
                # The server has become a standby; the next connection is to find its successor.
                connection.close()
                raise
            finally:
                # Not in the pool's reset hook: it would hand each return to a worker thread.
                connection.returned_at = monotonic()
                if connection.closed:
                    self._note_lost(connection)

    @contextmanager
    def _lending(self) -> Iterator[PooledConnection]:
        try:
            connection = self._pool.getconn()
        except PoolTimeout as error:
            # Whether the database is away or the others are busy with it.
            if len(self._lent) < self._size:
                raise
            raise PoolExhausted("no connection became free in time") from error
        self._lent.add(connection)
        try:
            with connection:
                yield connection
        finally:
            self._lent.discard(connection)
            self._pool.putconn(connection)

    def _note_lost(self, connection: PooledConnection) -> None:
        self._lost_at = connection.returned_at
        if connection.is_direct:
            self._unanswered.add(connection.server_process)

    def is_suspect(self, connection: PooledConnection) -> bool:
        """Tell whether a connection may have been cut off while it rested.

        One that rested since another was lost is suspect at once.
        """
        return connection.returned_at < max(self._lost_at, monotonic() - FRESH_S)

    def _check(self, connection: PooledConnection) -> None:
        """Find out before lending whether a connection was cut off while it rested."""
        if self.is_suspect(connection):
            connection.patience_s = CHECK_S
            ConnectionPool.check_connection(connection)
            connection.patience_s = self._patience_s

    @contextmanager
    def committing(self) -> Iterator[PooledConnection]:
        """Lend a connection for one statement that commits.

        Raises UnavailableError while too many commits that were given up have not ended: each
        keeps a server process, and with no standby to wait for it may do so for long.
        """
        with self.connection() as connection:
            self._require_few_unended(connection)
            with self._patient_for_a_commit(connection):
                yield connection

    @contextmanager
    def writing(self) -> Iterator[PooledConnection]:
        """Lend a connection inside a transaction. Raises UnavailableError as `committing` does."""
        with self.connection() as connection, self._patient_for_a_commit(connection):
            self._require_few_unended(connection)
            with connection.transaction():
                connection.patience_s = self._patience_s
                yield connection
                connection.patience_s = self.timeouts.commit_s

    @contextmanager
    def _patient_for_a_commit(self, connection: PooledConnection) -> Iterator[None]:
        connection.patience_s = self.timeouts.commit_s
        try:
            yield
        finally:
            connection.patience_s = self._patience_s

    @property
    def has_many_unended(self) -> bool:
        """Whether so many commits were given up that they may be in the way of others."""
        return len(self._unanswered) >= UNANSWERED_AT_MOST

    def _require_few_unended(self, connection: PooledConnection) -> None:
        if not self.has_many_unended:
            return
        asked = list(self._unanswered)
        unended = {pid for (pid,) in connection.execute(UNENDED, [asked])}
        self._unanswered.difference_update(set(asked) - unended)
        if self.has_many_unended:
            raise UnavailableError("earlier commits have not ended")

    @contextmanager
    def inserting(self) -> Iterator[PooledConnection]:
        """Lend a connection inside a transaction that inserts events and does nothing else."""
        with self.writing() as connection:
            yield connection

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        """Return what one SELECT gives."""
        sql, parameters = query
        with self.connection() as connection:
            return connection.execute(sql, parameters, binary=True).fetchall()

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """Run one statement that gives nothing."""
        with self.connection() as connection:
            connection.execute(sql, parameters)

    @property
    def size(self) -> int:
        """How many connections there are, at most."""
        return self._size

    def waiting(self) -> int:
        """Return how many callers wait for a connection."""
        return self._pool.get_stats().get("requests_waiting", 0)

    def register_type_adapters(self) -> None:
        """Do nothing: our statements use no composite types."""

    def close(self) -> None:
        """Close the connections."""
        self.hints.close()
        self._pool.close()

    def __del__(self) -> None:
        """Leave closing to the owner: the package's class would close its pool here."""


def with_defaults(url: str) -> str:
    """Return the connection string with DEFAULTS for what it does not say."""
    return make_conninfo(**{**DEFAULTS, **conninfo_to_dict(url)})
