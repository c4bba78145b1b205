"""Watches whose readers do not take what they are given: cheap for the server, and told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from foldlog import Client, Event
from foldlog.v1 import service_pb2

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refusal_of, refused
from tests.contract.said import user
from tests.faults.counts import METRICS, open_watches
from tests.faults.memory import MIB, resident_bytes
from tests.faults.waiting import until
from tests.served import Served

LAG = 20
BATCHES, BATCH, EVENT_BYTES = 12, 30, 50_000
STUCK = 6
MOST_GROWTH = 60 * MIB


def fill(log: Calls) -> None:
    """Append much more than the network keeps under way."""
    for _ in range(BATCHES):
        log.append(*(user("x" * EVENT_BYTES) for _ in range(BATCH)))


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    """A server that lets a watch lag a little."""
    return serve("sqlite-file", FOLDLOG_WATCH_BUFFER=str(LAG), **METRICS)


def test_a_reader_that_does_not_read_is_told_where_to_go_on(served: Served) -> None:
    log = Calls.create(served.stub)
    answers = log.watch()
    assert next(answers).HasField("caught_up")
    fill(log)
    seqs: list[int] = []
    with refused("SLOW_READER") as told:
        for answer in answers:
            seqs.append(answer.event.seq)
    assert told.facts["cursor"] == str(len(seqs))
    assert f"go on from {len(seqs)}" in told.message
    assert told.retry is not None
    for answer in log.watch(len(seqs)):
        if answer.HasField("caught_up"):
            break
        seqs.append(answer.event.seq)
    assert seqs == [*range(BATCHES * BATCH)]


def test_a_reader_of_all_sessions_that_does_not_read_is_told_its_cursor(
    served: Served,
) -> None:
    log = Calls.create(served.stub)
    request = service_pb2.WatchAllEventsRequest(from_now=True)
    answers = served.stub.WatchAllEvents(request, timeout=DEADLINE_S)
    assert next(answers).HasField("caught_up")
    fill(log)
    seqs, cursor = list[int](), ""
    with refused("SLOW_READER") as told:
        for answer in answers:
            seqs.append(answer.event.seq)
            cursor = answer.cursor
    assert told.facts["cursor"] == cursor
    again = service_pb2.WatchAllEventsRequest(after_cursor=cursor)
    for answer in served.stub.WatchAllEvents(again, timeout=DEADLINE_S):
        if answer.HasField("caught_up"):
            break
        seqs.append(answer.event.seq)
    assert seqs == [*range(BATCHES * BATCH)]


def test_the_client_goes_on_by_itself(served: Served) -> None:
    log = Calls.create(served.stub)
    seqs: list[int] = []
    with Client(served.address) as client:
        for item in client.session(log.session_id).watch():
            if not seqs and not isinstance(item, Event):
                fill(log)  # while nobody reads
            elif isinstance(item, Event):
                seqs.append(item.seq)
                if len(seqs) == BATCHES * BATCH:
                    break
    assert seqs == [*range(BATCHES * BATCH)]


def test_a_reader_that_keeps_up_is_not_too_slow_for_large_batches(served: Served) -> None:
    log = Calls.create(served.stub)
    answers = log.watch()
    assert next(answers).HasField("caught_up")
    for number in range(3):
        log.append(*(user("x") for _ in range(10 * LAG)))
        told = [next(answers).event.seq for _ in range(10 * LAG)]
        assert told == [*range(number * 10 * LAG, (number + 1) * 10 * LAG)]


def growth(served: Served) -> int:
    """Return what watches cost that have taken one event each, of many, and take no more."""
    log = Calls.create(served.stub)
    fill(log)
    watches: list[Any] = []
    before = resident_bytes(served)
    for _ in range(STUCK):
        watches.append(log.watch())
        assert next(watches[-1]).event.seq == 0
    grown = resident_bytes(served) - before
    for each in watches:
        each.cancel()
    return grown


def test_readers_that_do_not_read_cost_little_memory(serve: Callable[..., Served]) -> None:
    assert growth(serve("sqlite-file")) < MOST_GROWTH


def test_control_watches_without_a_bound_cost_much(serve: Callable[..., Served]) -> None:
    assert growth(serve("sqlite-file", "tests.faults.unsafe.unbounded_watches")) > MOST_GROWTH


async def test_a_reader_that_goes_away_while_it_lags_leaves_nothing(served: Served) -> None:
    log = Calls.create(served.stub)
    answers = log.watch()
    assert next(answers).HasField("caught_up")
    fill(log)
    answers.cancel()
    with pytest.raises(grpc.RpcError) as caught:
        list(answers)
    assert refusal_of(caught.value).code is grpc.StatusCode.CANCELLED
    await until(lambda: open_watches(served) == 0)
