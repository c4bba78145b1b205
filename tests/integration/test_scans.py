"""What calls cost PostgreSQL, as its own statistics tell: no scan of the events, one small row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import foldlog
import psycopg
import pytest
from foldlog import PositionRange, assistant, user

from tests import postgres
from tests.served import Served

SCANS = "SELECT seq_scan FROM pg_stat_user_tables WHERE relname = %s"
WAL = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
FORKS = 20
# As long as messages are: of a table of short rows PostgreSQL rightly reads all, for a tenth of it.
TEXT = "message {} " + 700 * "x"


@pytest.fixture
def url() -> Iterator[str]:
    with postgres.database() as lent:
        yield lent


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connected:
        yield connected


def number(connection: psycopg.Connection[Any], sql: str, *parameters: str) -> int:
    row = connection.execute(sql, parameters).fetchone()
    assert row is not None
    return int(row[0])


def served(url: str, place: Path, stack: ExitStack) -> foldlog.Client:
    """Start a server, and return a client of it."""
    place.mkdir()
    running = Served(url, place)
    stack.callback(running.close)
    client = stack.enter_context(foldlog.Client(running.start().address))
    stack.callback(running.terminate)
    return client


def grown(client: foldlog.Client, length: int) -> foldlog.Session:
    session = client.create(f"of {length}")
    for start in range(0, length, 1_000):
        count = min(1_000, length - start)
        session.append(*(user(TEXT.format(start + place)) for place in range(count)))
    return session


def test_no_call_scans_the_events(
    url: str, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        grown(served(url, tmp_path / "first", stack), 5_000)
    connection.execute("VACUUM ANALYZE")
    before = number(connection, SCANS, "foldlog_events")
    with ExitStack() as stack:
        client = served(url, tmp_path / "second", stack)
        session = client.session("of 5000")
        session.append(assistant("after a restart"))
        summary = foldlog.NewEvent(user("summary"), replace=PositionRange(0, 4_000))
        session.append(summary)
        request = [each.message for each in session.messages()]
        assert session.check(request).ok
        assert len(request) == 1_001
        assert [each.seq for each in session.events(4_990)] == list(range(4_990, 5_002))
        session.fork(at_seq=2_500).append(user("in a fork"))
        session.rewind(5_000)
        assert len(list(client.list())) == 2
        assert session.verify().intact
    assert number(connection, SCANS, "foldlog_events") == before


@pytest.mark.parametrize("length", [100, 10_000])
def test_a_forks_commit_writes_less_than_a_kilobyte(
    url: str, connection: psycopg.Connection[Any], tmp_path: Path, length: int
) -> None:
    with ExitStack() as stack:
        session = grown(served(url, tmp_path / "server", stack), length)
        written = []
        for _ in range(FORKS):
            before = number(connection, WAL)
            session.fork(at_seq=length // 2)
            written.append(number(connection, WAL) - before)
    # The least: the index is written behind the answers, into the stretch of one fork or another.
    assert min(written) < 1_000
