"""Work that the tests give to processes of their own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from typing import TypeVar
from uuid import UUID

from eventsourcing.persistence import IntegrityError, Tracking
from foldlog.persistence.index import INDEX_NAME, IndexChange, Instant, SessionCreated
from foldlog.persistence.migrate import migrate
from foldlog.persistence.store import open_store

Result = TypeVar("Result")


def in_processes(work: Callable[[str], Result], database_url: str, count: int) -> list[Result]:
    """Run the work in so many processes at once."""
    # Not forked: the test process has threads and connections.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        return list(pool.map(work, [database_url] * count))


def apply_all(database_url: str) -> list[int]:
    """Bring the index up to the feed's end, in stretches; return the positions that we moved it to.

    Each session's next_seq counts the rows that were applied to it.
    """
    store = open_store(database_url)
    moved: list[int] = []
    while True:
        changes = store.recorder.select_changes(store.index.position() or 0, 7)
        if not changes:
            store.close()
            return moved
        last = changes[-1][0]
        try:
            store.index.apply(_index_changes(changes), Tracking(INDEX_NAME, last))
        except IntegrityError:
            continue
        moved.append(last)


def _index_changes(changes: Sequence[tuple[int, UUID, int]]) -> list[IndexChange]:
    out = []
    by_session = sorted(((key, version) for _, key, version in changes), key=str)
    for key, versions in groupby(by_session, key=lambda pair: pair[0]):
        numbers = [version for _, version in versions]
        made = SessionCreated(str(key), Instant(0)) if 1 in numbers else None
        custom = tuple(("version", str(number)) for number in numbers)
        out.append(IndexChange(key, created=made, next_seq=max(numbers), custom=custom))
    return out


def migrate_now(database_url: str) -> list[str]:
    """Migrate."""
    return migrate(database_url)
