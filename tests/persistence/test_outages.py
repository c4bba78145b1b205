"""A PostgreSQL that is away, cut off or crowded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from eventsourcing.persistence import DataError
from foldlog.persistence.errors import (
    HeldError,
    PoolExhausted,
    UnansweredError,
    UnavailableError,
    is_unavailable,
)
from foldlog.persistence.migrate import migrate, pending
from foldlog.persistence.postgres.connections import WAITING_PER_CONNECTION, PostgresConnections
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store, open_store
from foldlog.persistence.timeouts import Timeouts

from tests.persistence.stores import row
from tests.postgres import another_server

CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
AWAY = "postgresql://postgres@127.0.0.1:1/foldlog"


def connections(store: Store) -> PostgresConnections:
    """Return the store's connections."""
    return cast("PostgresConnections", cast("Any", store.recorder).datastore)


def cut(url: str) -> None:
    """End every other connection to the database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CUT)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    for use in (open_store, migrate, pending):
        with pytest.raises(UnavailableError) as caught:
            use(AWAY)
        assert is_unavailable(caught.value)


@pytest.mark.parametrize("module", ["psycopg", "alembic"])
def test_a_driver_that_is_not_installed_is_asked_for(module: str) -> None:
    script = f"""
import sys
sys.modules[{module!r}] = None
from foldlog.persistence.errors import DriverMissingError
from foldlog.persistence.migrate import migrate
try:
    migrate({AWAY!r})
except DriverMissingError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "foldlog[postgres]" in told.stdout


def test_a_connection_that_is_cut_in_a_write_makes_the_store_unavailable(plain_url: str) -> None:
    store = open_store(plain_url)
    with pytest.raises(UnavailableError):
        _cut_in_a_write(store, plain_url)
    assert len(store.recorder.insert_events([row(uuid4(), 1)])) == 1
    store.close()


def _cut_in_a_write(store: Store, url: str) -> None:
    session = uuid4()

    def chunks() -> Iterator[list[SessionStoredEvent]]:
        yield [row(session, 1)]
        cut(url)
        yield [row(session, 2)]

    store.recorder.insert_chunks(chunks())


def test_connections_that_were_cut_while_idle_are_replaced_unnoticed(
    plain_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldlog.persistence.postgres.connections.FRESH_S", -1.0)
    store = open_store(plain_url)
    with connections(store).connection():
        pass
    cut(plain_url)
    for version in range(1, 5):
        store.recorder.insert_events([row(uuid4(), version)])
    store.close()


def test_more_waiting_callers_than_the_pool_takes_are_turned_away(plain_url: str) -> None:
    store = open_store(plain_url, pool_size=1)
    lender = connections(store)
    with ThreadPoolExecutor(WAITING_PER_CONNECTION) as threads:
        with lender.connection():
            waiting = [
                threads.submit(store.recorder.last_version, uuid4())
                for _ in range(WAITING_PER_CONNECTION)
            ]
            while lender.waiting() < WAITING_PER_CONNECTION:
                pass
            with pytest.raises(PoolExhausted) as caught:
                store.recorder.last_version(uuid4())
        assert [each.result() for each in waiting] == [None] * WAITING_PER_CONNECTION
    assert not is_unavailable(caught.value)
    store.close()


def test_text_that_the_database_cannot_hold_is_a_data_error(plain_url: str) -> None:
    store = open_store(plain_url)
    with pytest.raises(DataError):
        store.recorder.insert_events([SessionStoredEvent(uuid4(), 1, "a\x00b", b"")])
    store.close()


def test_a_connection_to_a_server_that_became_a_standby_is_given_up(plain_url: str) -> None:
    store = open_store(plain_url, pool_size=1)
    with connections(store).connection() as connection:
        connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(UnavailableError):
        store.recorder.insert_events([row(uuid4(), 1)])
    assert len(store.recorder.insert_events([row(uuid4(), 1)])) == 1
    store.close()


def test_a_store_can_be_closed_while_hints_pass(plain_url: str) -> None:
    store = open_store(plain_url)
    store.recorder.wait_for_hint(0)
    store.recorder.notify()
    store.close()
    store.recorder.notify()
    assert store.recorder.wait_for_hint(0)


def test_hints_come_again_after_the_listener_was_cut_off(plain_url: str) -> None:
    one, other = open_store(plain_url), open_store(plain_url)
    assert other.recorder.wait_for_hint(10)
    cut(plain_url)
    # Made again, the listener hints by itself, since something may have been hinted meanwhile.
    assert other.recorder.wait_for_hint(10)
    one.recorder.last_version(uuid4())
    one.recorder.notify()
    assert other.recorder.wait_for_hint(10)
    one.close()
    other.close()


def test_a_crash_of_the_server_loses_no_acknowledged_row_and_passes() -> None:
    with another_server() as crashing:
        migrate(crashing.url())
        store, session, stored = open_store(crashing.url()), uuid4(), list[int]()

        def write_until_it_fails() -> None:
            while True:
                store.recorder.insert_events([row(session, len(stored) + 1)])
                stored.append(len(stored) + 1)

        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(write_until_it_fails)
            while len(stored) < 100:
                pass
            crashing.crash()
            assert is_unavailable(cast("Exception", writing.exception()))
        crashing.start()
        with suppress(UnavailableError):
            store.recorder.last_version(session)
        found = [each.originator_version for each in store.recorder.select_events(session)]
        assert found[: len(stored)] == stored
        assert len(found) <= len(stored) + 1
        store.close()


def test_a_row_is_held_while_another_transaction_writes_it(plain_url: str) -> None:
    store, session = open_store(plain_url), uuid4()
    recorder = store.recorder

    def chunks() -> Iterator[list[SessionStoredEvent]]:
        yield [row(session, 1)]
        assert recorder.is_held(row(session, 1))
        assert not recorder.is_held(row(session, 2))
        with pytest.raises(HeldError):
            recorder.insert_events([row(session, 1)])

    assert not recorder.is_held(row(session, 1))
    recorder.insert_chunks(chunks())
    assert not recorder.is_held(row(session, 1))
    assert recorder.last_version(session) == 1
    store.close()


def test_callers_that_no_connection_becomes_free_for_are_turned_away(
    plain_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldlog.persistence.postgres.connections.POOL_TIMEOUT_S", 0.1)
    store = open_store(plain_url, pool_size=1)
    with connections(store).connection(), pytest.raises(PoolExhausted):
        store.recorder.last_version(uuid4())
    assert store.recorder.last_version(uuid4()) is None
    store.close()


def test_a_statement_that_takes_too_long_is_ended_and_wrote_nothing(plain_url: str) -> None:
    store = open_store(plain_url, timeouts=Timeouts(statement_s=0.1))
    with pytest.raises(UnavailableError) as caught, connections(store).connection() as connection:
        connection.execute("SELECT pg_sleep(60)")
    assert not isinstance(caught.value, UnansweredError)
    store.close()


def test_a_server_that_does_not_answer_is_given_up(plain_url: str) -> None:
    store = open_store(plain_url)
    with pytest.raises(UnansweredError):
        _wait_impatiently(connections(store))
    assert store.recorder.last_version(uuid4()) is None
    store.close()


def _wait_impatiently(lender: PostgresConnections) -> None:
    with lender.connection() as connection:
        connection.patience_s = 0.1
        connection.execute("SELECT pg_sleep(20)")
