"""A damaged page of a SQLite file: each read of the event table goes on around it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from eventsourcing.persistence import Tracking
from foldlog.persistence.index import INDEX_NAME, IndexChange, Instant, SessionCreated
from foldlog.persistence.rows import WholeRow
from foldlog.persistence.store import Store, open_store

from tests.persistence.stores import row

TENANTS = {UUID(int=1): "one", UUID(int=2): "two"}
LOG = UUID(int=1)
ROWS, LOST = 40, 20
MARK = b"the state of version %d "


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Store]:
    """A store with rows of two tenants' sessions in turn, and noise in the midst of them."""
    path = tmp_path / "foldlog.db"
    with closing(open_store(f"sqlite:///{path}")) as store:
        for version in range(1, ROWS + 1):
            state = MARK % version * 50
            rows = [replace(row(id_, version, state), tenant=t) for id_, t in TENANTS.items()]
            store.recorder.insert_events(rows)
        created = SessionCreated("s", Instant(0))
        changes = [IndexChange(id_, tenant, created) for id_, tenant in TENANTS.items()]
        store.index.apply(changes, Tracking(INDEX_NAME, 1))
    _damage(path, MARK % LOST)
    with closing(open_store(f"sqlite:///{path}")) as store:
        yield store


def _damage(path: Path, text: bytes) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    page = path.read_bytes().index(text) // size
    with path.open("r+b") as file:
        file.seek(page * size)
        file.write(b"\xa5" * size)


def test_an_audit_reads_every_row_and_the_lost_ones_without_contents(damaged: Store) -> None:
    found, after = list[WholeRow](), 0
    while page := damaged.recorder.select_whole(LOG, after, 3_000):
        found += page
        after = page[-1].originator_version
    assert [each.originator_version for each in found] == [*range(1, ROWS + 1)]
    assert [each.id for each in found] == [*range(1, 2 * ROWS, 2)]
    lost = {each.originator_version for each in found if not each.topic}
    assert LOST in lost
    assert len(lost) < ROWS / 2
    assert {each.tenant for each in found if each.topic} == {"one"}


def test_a_tenants_rows_are_counted_with_those_that_are_lost(damaged: Store) -> None:
    count = damaged.recorder.count_tenant_rows
    assert count("one", 0, 1_000) == count("two", 0, 1_000) == ROWS
    assert count("one", 2 * ROWS - 4, 1_000) == 2
    assert count("one", 0, 5) == 5
    assert count("nobody", 0, 5) == 0


def test_heads_are_told_whose_rows_are_lost_or_not(damaged: Store) -> None:
    def places(tenant: str, after: int, stop: int) -> list[int]:
        heads = damaged.recorder.select_heads(tenant, after, stop, 10)
        return [place for place, _, _ in heads]

    assert places("one", 0, 2 * ROWS) == [2 * ROWS - 1]
    assert places("two", 0, 2 * ROWS) == [2 * ROWS]
    assert places("one", 0, 2 * LOST) == [2 * LOST - 1]  # a lost one
    assert places("one", 2 * LOST, 2 * LOST) == []
