"""What callers are told while PostgreSQL does not answer, and that they are told in the end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import psycopg
import pytest
from foldlog.application.identity import DEFAULT_TENANT, aggregate_id

from tests.contract.calls import Calls
from tests.contract.refusal import Refusal, refusal_of, refused
from tests.contract.said import user
from tests.faults.databases import Database
from tests.faults.proxy import Proxy
from tests.faults.raging import Serve

IMPATIENT = {"FOLDLOG_COMMIT_TIMEOUT_S": "0.5", "FOLDLOG_STATEMENT_TIMEOUT_S": "1"}
STOP_DEADLINE_S = 120
UNENDED = "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
NO_PLACE = """
    INSERT INTO foldlog_events (tenant, originator_id, originator_version, topic, state,
                                notification_id)
    SELECT %s, %s, max(originator_version) + 1, '', '', 0 FROM foldlog_events
    WHERE originator_id = %s
"""


@contextmanager
def no_standby(database: Database) -> Iterator[None]:
    """Have commits wait for a standby that does not exist."""
    _set(database, "nobody")
    try:
        yield
    finally:
        _set(database, "")


def _set(database: Database, names: str) -> None:
    database.server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    database.server.execute("SELECT pg_reload_conf()")
    with psycopg.connect(database.url, autocommit=True) as connection:
        while connection.execute("SHOW synchronous_standby_names").fetchone() != (names,):
            time.sleep(0.01)


def unavailable(told: Refusal) -> None:
    """Require that a caller is told when to try again."""
    assert told.retry is not None
    assert told.retry.retry_delay.seconds == 1


def test_a_commit_that_hangs_is_unavailable_and_is_found_out_later(
    serve: Serve, database: Database
) -> None:
    log = Calls.create(serve("postgres", url=database.url, **IMPATIENT).stub)
    with no_standby(database):
        for _ in range(3):
            with refused("STORE_UNAVAILABLE") as told:
                log.append(user("once"), request_id="r", expected_next_seq=0)
            unavailable(told)
        assert log.texts() == []
    assert log.append(user("once"), request_id="r", expected_next_seq=0).first_seq == 0
    assert log.append(user("twice")).first_seq == 1
    assert log.texts() == ["once", "twice"]


def test_commits_that_hang_keep_few_processes_of_the_server(
    serve: Serve, database: Database
) -> None:
    served = serve("postgres", url=database.url, **IMPATIENT)
    logs = [Calls.create(served.stub) for _ in range(8)]
    with no_standby(database):
        for log in logs:
            with refused("STORE_UNAVAILABLE"):
                log.append(user("late"))
        with psycopg.connect(database.url) as connection:
            row = connection.execute(UNENDED).fetchone()
        assert row is not None
        # Four, and one of the index.
        assert row[0] <= 5
    assert [log.append(user("more")).next_seq for log in logs][-1] == 1


def test_a_session_that_another_writer_holds_keeps_no_other_from_writing(
    serve: Serve, database: Database
) -> None:
    stub = serve("postgres", url=database.url).stub
    held, free = Calls.create(stub), Calls.create(stub)
    key = aggregate_id(DEFAULT_TENANT, held.session_id)
    with psycopg.connect(database.url) as other, ThreadPoolExecutor() as threads:
        other.execute(NO_PLACE, [DEFAULT_TENANT, key, key])
        waiting = threads.submit(held.append, user("held"), request_id="r")
        assert [free.append(user(str(seq))).first_seq for seq in range(20)] == list(range(20))
        with refused("STORE_UNAVAILABLE") as told:
            waiting.result()
        unavailable(told)
        other.rollback()
    assert held.append(user("held"), request_id="r").first_seq == 0


def test_a_silent_network_ends_reads_and_writes_alike(
    serve: Serve, database: Database, proxy: Proxy
) -> None:
    log = Calls.create(serve("postgres", url=database.url_through(proxy.port), **IMPATIENT).stub)
    log.append(user("before"))
    proxy.stall()
    for call in (log.messages, lambda: log.append(user("during"), request_id="r")):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        told = refusal_of(caught.value)
        assert told.reason in {"STORE_UNAVAILABLE", "OVERLOADED"}
        unavailable(told)
    proxy.resume()
    while True:
        try:
            assert log.append(user("during"), request_id="r").first_seq == 1
            break
        except grpc.RpcError as error:
            unavailable(refusal_of(error))
    assert log.texts() == ["before", "during"]


def test_more_callers_than_the_database_serves_are_turned_away_and_not_kept(
    serve: Serve, database: Database
) -> None:
    stub = serve("postgres", url=database.url, FOLDLOG_POOL_SIZE="2").stub
    log = Calls.create(stub)
    with psycopg.connect(database.url) as other, ThreadPoolExecutor(64) as threads:
        other.execute("LOCK TABLE foldlog_events IN ACCESS EXCLUSIVE MODE")
        waiting = [threads.submit(log.events) for _ in range(64)]
        told = [refusal_of(_error(each.exception())) for each in waiting]
        other.rollback()
    reasons = [each.reason for each in told]
    assert set(reasons) == {"STORE_UNAVAILABLE", "OVERLOADED"}
    assert reasons.count("OVERLOADED") > 32
    for each in told:
        unavailable(each)
    assert log.events() == []


def _error(error: BaseException | None) -> grpc.RpcError:
    assert isinstance(error, grpc.RpcError)
    return error


def test_a_server_whose_database_is_silent_can_be_stopped(
    serve: Serve, database: Database, proxy: Proxy
) -> None:
    served = serve(
        "postgres",
        url=database.url_through(proxy.port),
        FOLDLOG_SHUTDOWN_GRACE_S="1",
        **IMPATIENT,
    )
    log = Calls.create(served.stub)
    with ThreadPoolExecutor() as threads:
        proxy.stall()
        waiting = threads.submit(log.append, user("late"))
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(STOP_DEADLINE_S) == 0
        assert waiting.exception() is not None
