"""The feed on PostgreSQL: followed while many write, it misses nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from foldlog.persistence.postgres.connections import PostgresConnections
from foldlog.persistence.postgres.recorder import PostgresSessionRecorder
from foldlog.persistence.postgres.watermark import oldest
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.store import Store, open_store

from tests.persistence.following import Select, Tail, with_watermark, without_watermark
from tests.persistence.stores import open_write, row, rows
from tests.postgres import empty_database

WRITERS = 16


def write_and_follow(recorder: SessionRecorder, select: Select, duration_s: float) -> int:
    """Write from many threads while one follows; return how many rows it missed."""
    done, deadline = Event(), time.monotonic() + duration_s
    tail = Tail(select)

    def write() -> list[int]:
        session, written = uuid4(), list[int]()
        while time.monotonic() < deadline:
            written += recorder.insert_events(rows(session, 1 + len(written) % 3, len(written) + 1))
        return written

    with ThreadPoolExecutor(WRITERS + 1) as threads:
        following = threads.submit(tail.follow, done)
        writing = [threads.submit(write) for _ in range(WRITERS)]
        written = [place for each in writing for place in each.result()]
        done.set()
        following.result()
    assert tail.seen == sorted(set(tail.seen))
    assert set(tail.seen) <= set(written)
    return len(written) - len(tail.seen)


@pytest.fixture
def wide_store(postgres_url: str) -> Iterator[Store]:
    """A store with a connection for each writer."""
    store = open_store(postgres_url, pool_size=WRITERS + 2)
    yield store
    store.close()


def test_a_reader_that_tails_sixteen_writers_misses_nothing(wide_store: Store) -> None:
    recorder = wide_store.recorder
    assert write_and_follow(recorder, with_watermark(recorder), 2) == 0


def test_without_the_watermark_the_same_reader_misses_rows(wide_store: Store) -> None:
    recorder = wide_store.recorder
    missed = (write_and_follow(recorder, without_watermark(recorder), 1) for _ in range(30))
    assert any(missed)


def test_the_feed_waits_for_a_row_that_commits_late(wide_store: Store, postgres_url: str) -> None:
    early, late = uuid4(), uuid4()
    with open_write(postgres_url, early) as unfinished:
        wide_store.recorder.insert_events(rows(late, 2))
        assert wide_store.recorder.select_changes(0, 10) == []
        assert wide_store.recorder.select_notifications(None, 10) == []
        assert wide_store.recorder.max_notification_id() is None
        unfinished.commit()
    found = wide_store.recorder.select_changes(0, 10)
    assert [(session, version) for _, session, version in found] == [
        (early, 1),
        (late, 1),
        (late, 2),
    ]


def test_what_is_stored_behind_an_open_write_has_its_place_before_it_can_be_read(
    wide_store: Store, postgres_url: str
) -> None:
    recorder = wide_store.recorder
    with open_write(postgres_url, uuid4()) as unfinished:
        last = recorder.insert_chunks([rows(uuid4(), 2)])
        assert (recorder.max_notification_id(), recorder.last_stored_id()) == (None, last)
        unfinished.commit()
    assert recorder.max_notification_id() == recorder.last_stored_id() == last


def test_without_the_watermark_a_row_that_commits_late_is_passed_over(
    wide_store: Store, postgres_url: str
) -> None:
    early, late = uuid4(), uuid4()
    select = without_watermark(wide_store.recorder)
    with open_write(postgres_url, early) as unfinished:
        wide_store.recorder.insert_events([row(late, 1)])
        ((place, _, _),) = select(0)
        unfinished.commit()
    assert select(place) == []


def test_the_feed_goes_on_when_a_late_write_is_rolled_back(
    wide_store: Store, postgres_url: str
) -> None:
    late = uuid4()
    with open_write(postgres_url, uuid4()) as unfinished:
        wide_store.recorder.insert_events([row(late, 1)])
        unfinished.rollback()
    assert [session for _, session, _ in wide_store.recorder.select_changes(0, 10)] == [late]


def test_a_long_transaction_of_another_database_does_not_hold_the_feed_up(
    wide_store: Store,
) -> None:
    session = uuid4()
    with empty_database() as other, psycopg.connect(other) as busy:
        busy.execute("CREATE TABLE something AS SELECT pg_current_xact_id()")
        wide_store.recorder.insert_events([row(session, 1)])
        assert [each for _, each, _ in wide_store.recorder.select_changes(0, 10)] == [session]


def test_a_reader_does_not_hold_writers_up(wide_store: Store) -> None:
    datastore = cast("Any", wide_store.recorder).datastore
    with datastore.writing() as reading:
        reading.execute("SELECT count(*) FROM foldlog_events")
        wide_store.recorder.select_changes(0, 10)
        assert len(wide_store.recorder.insert_events(rows(uuid4(), 3))) == 3


def test_a_role_without_privileges_sees_the_writes_in_flight_of_another(
    wide_store: Store, postgres_url: str
) -> None:
    reader = f"reader_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {reader} LOGIN BYPASSRLS")
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}")
    datastore = PostgresConnections(postgres_url.replace("//postgres@", f"//{reader}@"))
    recorder = PostgresSessionRecorder(datastore)
    try:
        with open_write(postgres_url, uuid4()) as unfinished:
            wide_store.recorder.insert_events([row(uuid4(), 1)])
            assert recorder.select_changes(0, 10) == []
            unfinished.commit()
        assert len(recorder.select_changes(0, 10)) == 2
    finally:
        datastore.close()


def test_ids_in_flight_are_completed_across_the_wrap_of_their_low_bits() -> None:
    upper = (7 << 32) + 5
    assert oldest(upper, []) == upper
    assert oldest(upper, [3]) == (7 << 32) + 3
    assert oldest(upper, [9]) == upper
    assert oldest(upper, [0xFFFFFFF0, 3]) == (6 << 32) + 0xFFFFFFF0
    assert oldest((7 << 32) - 2, [4]) == (7 << 32) - 2
