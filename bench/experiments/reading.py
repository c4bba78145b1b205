"""Reading sessions: the whole of a long one, and a compacted one after a restart."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import Any, Final

import psycopg
from foldlog._grpc import grpc
from foldlog.application.identity import DEFAULT_TENANT, aggregate_id
from foldlog.v1.service_pb2 import GetMessagesRequest

from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Bare, Ground
from bench.samples import Sample
from bench.servers.bare import method
from bench.sessions import compacted, grown, read_bytes
from tests.served import Served

LENGTH: Final = 10_000
LONG: Final = 100_000
LIVE: Final = 200
NEWEST: Final = """
    SELECT state FROM foldlog_events WHERE originator_id = %s
    ORDER BY originator_version DESC LIMIT %s
"""


class Restarted:
    """A server that is restarted before each read, and has answered about another session since."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._other = grown(served, 1)

    def read(self, session_id: str) -> Sample:
        """Read a session cold."""
        self.restart()
        return timed_read(self._served, session_id)

    def restart(self) -> None:
        """Restart the server and ask it about another session."""
        self._served.restart("graceful")
        read_bytes(self._served, GetMessagesRequest(session_id=self._other))


def timed_read(served: Served, session_id: str) -> Sample:
    """Read a session."""
    started = time.perf_counter()
    size = read_bytes(served, GetMessagesRequest(session_id=session_id))
    return {"seconds": time.perf_counter() - started, "bytes": size}


def loads(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """A long session to the client as bytes, cold and warm, and its rows from a bare server."""
    url = ground.migrated()
    served = ground.serve(url=url, closed_by=stack)
    session_id = grown(served, LENGTH)
    restarted = Restarted(served)
    bare = stack.enter_context(closing(Bare("load", url)))
    channel = stack.enter_context(grpc.insecure_channel(bare.address))
    load: Any = channel.unary_stream(method("Load"))
    key = aggregate_id(DEFAULT_TENANT, session_id).bytes

    def rows() -> Sample:
        started = time.perf_counter()
        size = sum(len(piece) for piece in load(key))
        return {"seconds": time.perf_counter() - started, "bytes": size}

    rows()
    return {
        "bare load": rows,
        "foldlog, cold": lambda: restarted.read(session_id),
        "foldlog, again": lambda: timed_read(served, session_id),
    }


def opens(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """A long session of few live messages after a restart, and as many rows by hand."""
    url = ground.migrated()
    served = ground.serve(url=url, closed_by=stack)
    session_id = compacted(served, LONG, LIVE)
    restarted = Restarted(served)
    connection = stack.enter_context(psycopg.connect(url, autocommit=True))
    key = aggregate_id(DEFAULT_TENANT, session_id)

    def rows() -> Sample:
        started = time.perf_counter()
        read = connection.execute(NEWEST, [key, LIVE], binary=True, prepare=True).fetchall()
        taken = time.perf_counter() - started
        return {"seconds": taken, "bytes": sum(len(row[0]) for row in read)}

    rows()
    return {"200 rows": rows, "foldlog": lambda: restarted.read(session_id)}


EXPERIMENTS: Final = (
    Experiment(
        "load",
        "load a 10,000-message session to the client as bytes",
        loads,
        (
            Goal(
                "load a 10,000-message session to the client, cold: time",
                "bare load of the same rows over gRPC as bytes",
                quotient("foldlog, cold", "bare load", "seconds"),
                most=1.3,
            ),
        ),
        rounds=7,
    ),
    Experiment(
        "open",
        "open a 100,000-event session compacted down to 200 live messages, after a restart",
        opens,
        (
            Goal(
                "open a 100,000-event session with 200 live messages after a restart: time",
                "reading 200 rows",
                quotient("foldlog", "200 rows", "seconds"),
                most=5.0,
            ),
        ),
        rounds=7,
    ),
)
