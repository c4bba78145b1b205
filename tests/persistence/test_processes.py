"""Several processes on one PostgreSQL database."""

from __future__ import annotations

from contextlib import closing
from uuid import uuid4

from foldlog.persistence.index import IndexQuery
from foldlog.persistence.migrate import pending
from foldlog.persistence.postgres.schema import steps
from foldlog.persistence.store import open_store

from tests.persistence.processes import apply_all, in_processes, migrate_now
from tests.persistence.stores import rows
from tests.postgres import empty_database


def test_processes_that_keep_the_index_apply_each_stretch_once(postgres_url: str) -> None:
    sessions = [uuid4() for _ in range(12)]
    with closing(open_store(postgres_url)) as store:
        for number in range(40):
            store.recorder.insert_events(
                [each for session in sessions for each in rows(session, 1, number + 1)]
            )
        moved = in_processes(apply_all, postgres_url, 4)
        positions = [place for each in moved for place in each]
        assert len(positions) == len(set(positions))
        assert store.index.position() == max(positions) == store.recorder.max_notification_id()
        for number in (1, 20, 40):
            page = store.index.list_sessions(IndexQuery(custom_key=str(number)))
            assert {each.aggregate_id for each in page.rows} == set(sessions)
            assert {each.next_seq for each in page.rows} == {40}


def test_processes_that_migrate_at_once_do_it_once() -> None:
    with empty_database() as url:
        applied = in_processes(migrate_now, url, 3)
        assert sorted(applied) == [[], [], steps()]
        assert pending(url) == []


def test_a_hint_reaches_another_process(plain_url: str) -> None:
    one, other = open_store(plain_url), open_store(plain_url)
    # The first wait begins to listen; what it misses until then comes as a hint once it does.
    assert other.recorder.wait_for_hint(10)
    one.recorder.notify()
    assert other.recorder.wait_for_hint(10)
    one.close()
    other.close()
