"""Transactions that commit in any order: the feed of all sessions passes over none of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from random import Random
from threading import Event
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from foldlog.persistence.postgres.insertion import insert
from foldlog.persistence.store import Store, open_store

from tests.faults.extent import Extent
from tests.faults.outcome import Outcome
from tests.persistence.following import Tail, with_watermark, without_watermark
from tests.persistence.stores import row
from tests.postgres import database

OPEN_AT_ONCE = 12
TURNS = 120


class Writers:
    """Connections that each write a row, and commit when they are told to."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._free = [stack.enter_context(psycopg.connect(url)) for _ in range(OPEN_AT_ONCE)]
        self._open: list[psycopg.Connection[Any]] = []
        self.committed = 0

    def write(self) -> None:
        """Write a row of a session of its own, and leave the transaction open."""
        connection = self._free.pop()
        connection.execute("SELECT 1")
        insert(connection, [row(uuid4(), 1)], 0, 0)
        self._open.append(connection)

    def end(self, random: Random) -> None:
        """End any of the open ones: mostly by a commit."""
        connection = self._open.pop(random.randrange(len(self._open)))
        if random.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()
            self.committed += 1
        self._free.append(connection)

    def go_on(self, random: Random) -> None:
        """Write or end, whichever is possible, at random."""
        if self._free and (not self._open or random.random() < 0.5):
            self.write()
        else:
            self.end(random)

    def end_all(self, random: Random) -> None:
        """End what is open, in any order."""
        while self._open:
            self.end(random)


def follow(url: str, tail: Tail, random: Random) -> int:
    """Write and commit in any order while a reader follows; return how many were committed."""
    done = Event()
    with ExitStack() as stack, ThreadPoolExecutor(1) as threads:
        writers = Writers(url, stack)
        following = threads.submit(tail.follow, done)
        try:
            for _ in range(TURNS):
                writers.go_on(random)
            writers.end_all(random)
        finally:
            done.set()
        following.result()
    return writers.committed


@pytest.fixture
def lent() -> Iterator[tuple[str, Store]]:
    """A database and its store."""
    with database() as url:
        store = open_store(url)
        yield url, store
        store.close()


def outcome_of(committed: int, seen: list[int]) -> Outcome:
    """Return what a reader of the feed has seen of what was committed."""
    return Outcome(
        fault="transactions committed in any order (feed of all sessions)",
        injected=committed,
        operations=committed,
        acknowledged=committed,
        lost=committed - len(set(seen)),
        doubled=len(seen) - len(set(seen)),
        reordered=sum(one > other for one, other in itertools.pairwise(seen)),
        unavailable_s=0.0,
        control="no watermark",
    )


def test_no_order_of_commits_makes_the_feed_pass_over_a_row(
    lent: tuple[str, Store], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    url, store = lent
    tail = Tail(with_watermark(store.recorder))
    rounds = extent.rounds(short=3, long=200)
    report(outcome_of(sum(follow(url, tail, extent.random) for _ in rounds), tail.seen))


def test_control_without_the_watermark_rows_are_passed_over(
    lent: tuple[str, Store], extent: Extent, control: Callable[[Outcome], None]
) -> None:
    url, store = lent
    tail = Tail(without_watermark(store.recorder))
    committed = 0
    while len(tail.seen) == committed:  # until it is behind for good
        committed += follow(url, tail, extent.random)
    control(outcome_of(committed, tail.seen))
