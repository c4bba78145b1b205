"""What messages take up on disk, and what a fork writes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import psycopg

from bench import workload
from bench.experiments.lengths import FORK
from bench.goals import Case, Cases, Experiment, Goal
from bench.ground import Ground
from bench.samples import Sample
from bench.sessions import grown
from bench.sources import Forks
from tests.served import Served

SIZE: Final = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
WAL: Final = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
EVENTS: Final = "SELECT count(*) FROM foldlog_events"
LENGTHS: Final = (1_000, 10_000)
TOTAL: Final = 10_000
FORKS: Final = 40
QUIET_S: Final = 0.6


def number(connection: psycopg.Connection[Any], sql: str) -> int:
    """Return the one number that a statement gives."""
    row = connection.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def measurable(
    ground: Ground, **environment: str
) -> Iterator[tuple[Served, psycopg.Connection[Any]]]:
    """Lend a server on a database of its own, and a connection to that."""
    url = ground.migrated()
    with ExitStack() as stack:
        served = ground.serve(environment, url, stack)
        yield served, stack.enter_context(psycopg.connect(url, autocommit=True))


def disk(ground: Ground, length: int, compression: str = "none") -> Sample:
    """Write sessions of a length, a message at a time, and return what a message takes up."""
    with measurable(ground, FOLDLOG_COMPRESSION=compression) as (served, connection):
        before = number(connection, SIZE)
        for _ in range(TOTAL // length):
            grown(served, length, batch=1)
        served.terminate()
        size = number(connection, SIZE) - before
    asked = workload.json_bytes(workload.messages(length)) / length
    return {"bytes": size / TOTAL, "ratio": size / TOTAL / asked}


def sizes(ground: Ground, stack: ExitStack) -> Cases:
    """Sessions of two lengths, as many messages in all, in clear and compressed."""
    written = {f"sessions of {n:,}": partial(disk, ground, n) for n in LENGTHS}
    return written | {
        f"sessions of {n:,}, compressed": partial(disk, ground, n, "zstd") for n in LENGTHS
    }


def fork_writes(ground: Ground, length: int) -> Sample:
    """Fork the middle of a session again and again; return the rows and the WAL of one fork."""
    with measurable(ground) as (served, connection):
        forks = iter(Forks(grown(served, length), length // 2))
        call: Any = served.channel.unary_unary(FORK)
        call(next(forks))
        settled(connection)
        rows, wal = number(connection, EVENTS), number(connection, WAL)
        # The least: the index is written behind the answers, into the stretch of some fork.
        until_answer = []
        for _ in range(FORKS):
            before = number(connection, WAL)
            call(next(forks))
            until_answer.append(number(connection, WAL) - before)
        settled(connection)
        return {
            "count": (number(connection, EVENTS) - rows) / FORKS,
            "bytes": (number(connection, WAL) - wal) / FORKS,
            "row_bytes": min(until_answer),
        }


def settled(connection: psycopg.Connection[Any]) -> None:
    """Wait until nothing is written any more."""
    last = -1
    while (now := number(connection, WAL)) != last:
        last = now
        time.sleep(QUIET_S)


def writes(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Forks of sessions of two lengths."""
    return {f"fork of {n:,}": partial(fork_writes, ground, n) for n in (100, 10_000)}


def disk_goal(where: str, case: str, most: float) -> Goal:
    """Return the goal of what a message takes up."""
    return Goal(
        f"bytes per message on disk, all tables and indexes, {where}",
        "the JSON bytes of the messages",
        lambda each: each[case]["ratio"],
        most=most,
        needs=(case,),
    )


DISK_GOALS: Final = (
    *(disk_goal(f"at {n:,} messages", f"sessions of {n:,}", 1.45) for n in LENGTHS),
    *(
        disk_goal(f"at {n:,} messages, compressed", f"sessions of {n:,}, compressed", 0.75)
        for n in LENGTHS
    ),
)
EXPERIMENTS: Final = (
    Experiment(
        "bytes",
        "bytes per message on disk, all tables and indexes",
        sizes,
        DISK_GOALS,
        rounds=1,
    ),
    Experiment(
        "fork-writes",
        "what a fork writes",
        writes,
        (
            Goal(
                "fork at the middle of a 10,000-message session: rows",
                "",
                lambda each: each["fork of 10,000"]["count"],
                most=1.0,
                unit="row",
            ),
            Goal(
                "fork at the middle of a 10,000-message session: WAL of its commit",
                "",
                lambda each: each["fork of 10,000"]["row_bytes"],
                most=1_000,
                unit="bytes",
            ),
        ),
        rounds=1,
    ),
)
