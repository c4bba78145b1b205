"""Watching a session: catching up, going live, notices."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import Calls, fresh_id
from tests.contract.refusal import refused
from tests.contract.said import batches, custom, replacing, system, user
from tests.served import Served


class Watch:
    """An open watch whose elements are taken one by one."""

    def __init__(self, log: Calls, from_seq: int = 0) -> None:
        self._call = log.watch(from_seq)
        self._elements: Iterator[Any] = iter(self._call)

    def next(self) -> Any:
        """Return the next element."""
        return next(self._elements)

    def seqs(self, count: int) -> list[int]:
        """Return the seqs of the next events."""
        elements = [self.next() for _ in range(count)]
        assert {each.WhichOneof("kind") for each in elements} <= {"event"}
        return [each.event.seq for each in elements]

    def caught_up(self) -> int:
        """Take the word that all is sent, and return its next_seq."""
        element = self.next()
        assert element.WhichOneof("kind") == "caught_up"
        next_seq: int = element.caught_up.next_seq
        return next_seq

    def rest(self) -> list[Any]:
        """Return what is left until the server ends the watch."""
        return list(self._elements)

    def cancel(self) -> None:
        """Close the watch."""
        self._call.cancel()


def test_a_watch_catches_up_says_so_and_goes_live(log: Calls) -> None:
    log.append(user("a"), custom("k"), user("b"))
    watch = Watch(log)
    assert watch.seqs(3) == [0, 1, 2]
    assert watch.caught_up() == 3
    log.append(user("c"))
    log.append(user("d"), user("e"))
    assert watch.seqs(3) == [3, 4, 5]
    watch.cancel()


def test_a_watch_begins_where_it_is_told(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    watch = Watch(log, 2)
    assert watch.seqs(1) == [2]
    assert watch.caught_up() == 3
    watch.cancel()


def test_a_watch_waits_for_a_seq_that_lies_ahead(log: Calls) -> None:
    log.append(user("a"))
    watch = Watch(log, 3)
    assert watch.caught_up() == 1
    log.append(user("b"), user("c"), user("d"), user("e"))
    assert watch.seqs(2) == [3, 4]
    watch.cancel()


def test_a_watched_event_is_as_a_read_shows_it(log: Calls) -> None:
    log.append(user("a", name="n"), user("b"), replacing(system("S"), 0, 0))
    watch = Watch(log)
    watched = [watch.next().event for _ in range(3)]
    watch.cancel()
    read = log.events()
    assert [each.body for each in watched] == [each.body for each in read]
    assert [each.replace for each in watched] == [each.replace for each in read]
    assert [(e.seq, e.type, e.time, e.chain) for e in watched] == [
        (e.seq, e.type, e.time, e.chain) for e in read
    ]


def test_a_watch_tells_of_dropped_history(log: Calls) -> None:
    log.append(user("a"), user("b"), replacing(system("S"), 0, 1))
    watch = Watch(log)
    watch.seqs(3)
    watch.caught_up()
    log.snapshot()
    element = watch.next()
    assert element.WhichOneof("kind") == "history_dropped"
    assert element.history_dropped.whole_from_seq == 2
    assert [(r.first, r.last) for r in element.history_dropped.dropped] == [(0, 1)]
    log.append(user("c"))
    assert watch.seqs(1) == [3]
    watch.cancel()


def test_a_watch_that_comes_back_hears_of_history_dropped_meanwhile(log: Calls) -> None:
    log.append(user("a"), user("b"), replacing(system("S"), 0, 1))
    log.snapshot()
    log.append(replacing(system("T"), 0, 1))
    log.snapshot()
    watch = Watch(log, 4)
    element = watch.next()
    assert element.WhichOneof("kind") == "history_dropped"
    assert [(r.first, r.last) for r in element.history_dropped.dropped] == [(0, 1), (2, 2)]
    assert watch.next().WhichOneof("kind") == "caught_up"
    watch.cancel()


def test_a_watch_ends_with_the_session(log: Calls) -> None:
    log.append(user("a"))
    watch = Watch(log)
    watch.seqs(1)
    watch.caught_up()
    log.delete()
    assert [each.WhichOneof("kind") for each in watch.rest()] == ["deleted"]


def test_a_watch_of_no_session_is_refused(stub: Any) -> None:
    with refused("SESSION_NOT_FOUND"):
        Watch(Calls(stub, fresh_id())).next()


def test_a_watch_of_a_deleted_session_is_refused(log: Calls) -> None:
    log.delete()
    with refused("SESSION_DELETED"):
        Watch(log).next()


def test_a_negative_seq_is_refused(log: Calls) -> None:
    with refused("INVALID_FIELD"):
        Watch(log, -1).next()


def test_a_watch_of_a_fork_reads_its_ancestors_first(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    child = log.fork(1)
    watch = Watch(child)
    assert watch.seqs(2) == [0, 1]
    assert watch.caught_up() == 2
    log.append(user("parent"))
    child.append(user("child"))
    element = watch.next()
    assert (element.event.seq, element.event.body.message.text) == (2, "child")
    watch.cancel()


def test_a_watch_reads_a_large_history(log: Calls) -> None:
    for batch in batches([user("x" * 100_000) for _ in range(80)]):
        log.append(*batch)
    watch = Watch(log)
    assert watch.seqs(80) == list(range(80))
    assert watch.caught_up() == 80
    watch.cancel()


def test_many_watches_see_every_event_once_in_order(log: Calls) -> None:
    watches = [Watch(log) for _ in range(8)]
    writers = [threading.Thread(target=_append_singly, args=(log, 25)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for watch in watches:
        seqs: list[int] = []
        while len(seqs) < 100:
            element = watch.next()
            if element.HasField("event"):
                seqs.append(element.event.seq)
        assert seqs == list(range(100))
        watch.cancel()
    for writer in writers:
        writer.join()


def _append_singly(log: Calls, count: int) -> None:
    for i in range(count):
        log.append(user(str(i)))


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_a_watch_goes_on_after_a_restart_without_gap_or_duplicate(
    log: Calls, served: Served
) -> None:
    log.append(user("a"), user("b"))
    watch = Watch(log)
    seen = watch.seqs(2)
    served.restart()
    with pytest.raises(grpc.RpcError):
        watch.rest()
    log.append(user("c"))
    again = Watch(log, seen[-1] + 1)
    assert again.seqs(1) == [2]
    again.cancel()
