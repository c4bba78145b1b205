"""The driver's errors as those of `eventsourcing.persistence`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from eventsourcing.persistence import PersistenceError
from psycopg import pq
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from foldlog.persistence.errors import (
    Constraint,
    DuplicateRowError,
    HeldError,
    PoolExhausted,
    UnansweredError,
    UnavailableError,
    translated,
)

# Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html that pass:
# connection lost, transaction ended for waiting too long or rolled back to be tried again,
# resources short, cancelled or shut down, failed I/O, and a write to a server that has become a
# standby.
PASSING = ("08", "25P03", "25P04", "40", "53", "57", "58", "25006", "55P03")
# Those of them that may come to a write that took effect: the connection is lost, or the server
# ends it while the commit waits for a standby.
UNANSWERED = ("08", "40003", "57P")
HELD = "55P03"


@contextmanager
def translation() -> Iterator[None]:
    """Raise what the driver and its pool raise as ours or the package's."""
    try:
        yield
    except TooManyRequests as error:
        raise PoolExhausted("too many callers wait for a connection") from error
    except (PoolTimeout, PoolClosed) as error:
        raise UnavailableError(str(error)) from error
    except psycopg.Error as error:
        raise as_ours(error) from error


def as_ours(error: psycopg.Error) -> PersistenceError:
    """Return the error that a caller of the store is to see."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return DuplicateRowError(_constraint(error.diag.constraint_name or ""))
    # Without a code it is libpq that speaks: the connection is gone or cannot be made.
    state = error.sqlstate or error.diag.sqlstate
    lost = state is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if lost or (state or "").startswith(UNANSWERED):
        return UnansweredError(str(error))
    if (state or "").startswith(PASSING):
        return HeldError(str(error)) if state == HELD else UnavailableError(str(error))
    return translated(error)


def _constraint(name: str) -> Constraint:
    # Partitions and shards have names of their own that contain the parent's.
    return "request" if "_request" in name else "version"


def check(connection: pq.abc.PGconn, result: pq.abc.PGresult) -> None:
    """Raise the driver's error unless a statement run on libpq's level succeeded."""
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return
    if connection.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError(connection.get_error_message())
    raise psycopg.errors.error_from_result(result)
