"""The feed of every session: events and facts, each once, each session's in order."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from foldlog.v1 import service_pb2

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refused
from tests.contract.said import replacing, system, user
from tests.served import Served


class Feed:
    """An open feed, seen through some sessions' ids."""

    def __init__(self, stub: Any, **fields: Any) -> None:
        request = service_pb2.WatchAllEventsRequest(**fields)
        self._call = stub.WatchAllEvents(request, timeout=DEADLINE_S)
        self._elements: Iterator[Any] = iter(self._call)
        self.cursor: str = fields.get("after_cursor", "")

    def next(self) -> Any:
        """Return the next element of any session."""
        element = next(self._elements)
        self.cursor = element.cursor or self.cursor
        return element

    def of(self, *logs: Calls, count: int) -> list[tuple[str, str]]:
        """Return the next elements of these sessions as (session id, what)."""
        wanted = {each.session_id for each in logs}
        told: list[tuple[str, str]] = []
        while len(told) < count:
            element = self.next()
            if element.session_id in wanted:
                told.append((element.session_id, _what(element)))
        return told

    def caught_up(self) -> str:
        """Read on until all that was stored is sent, and return the cursor."""
        while self.next().WhichOneof("kind") != "caught_up":
            pass
        return str(self.cursor)

    def cancel(self) -> None:
        """Close the feed."""
        self._call.cancel()


def _what(element: Any) -> str:
    if element.WhichOneof("kind") == "event":
        return str(element.event.seq)
    kind: str = element.fact.WhichOneof("kind")
    return kind


def now(log: Calls) -> str:
    """Return a cursor that is past everything written to the session so far."""
    feed = Feed(log.stub, from_now=True)
    feed.caught_up()
    log.update()
    while feed.of(log, count=1) != [(log.session_id, "updated")]:
        pass
    feed.cancel()
    return feed.cursor


def test_a_feed_tells_events_and_facts_in_each_sessions_order(log: Calls) -> None:
    feed = Feed(log.stub, after_cursor=now(log))
    other = Calls.create(log.stub, labels={"a": "1"})
    log.append(user("a"), user("b"))
    other.append(user("x"))
    log.update(set_labels={"l": "1"})
    log.append(replacing(system("S"), 0, 1))
    log.snapshot()
    epoch = log.open_writer(owner="me").writer_epoch
    log.close_writer(epoch)
    child = log.fork()
    log.delete()
    told = feed.of(log, other, child, count=11)
    feed.cancel()
    by_session: dict[str, list[str]] = defaultdict(list)
    for session_id, what in told:
        by_session[session_id].append(what)
    assert by_session[other.session_id] == ["created", "0"]
    assert by_session[child.session_id] == ["forked"]
    assert by_session[log.session_id] == [
        *("0", "1", "updated", "2", "history_dropped"),
        *("writer_opened", "writer_closed", "deleted"),
    ]


def test_facts_carry_what_happened(log: Calls) -> None:
    cursor = now(log)
    log.append(user("a"))
    log.update(set_labels={"l": "1"}, metadata_json="[1.0]")
    child = log.fork(0, labels={"c": "2"})
    log.open_writer(owner="me")
    feed = Feed(log.stub, after_cursor=cursor)
    facts: dict[str, Any] = {}
    while len(facts) < 3:
        element = feed.next()
        if element.session_id in {log.session_id, child.session_id} and element.HasField("fact"):
            facts[element.fact.WhichOneof("kind")] = element.fact
    feed.cancel()
    assert dict(facts["updated"].updated.labels) == {"l": "1"}
    assert facts["updated"].updated.metadata_json == "[1.0]"
    assert facts["forked"].forked.parent_session_id == log.session_id
    assert facts["forked"].forked.at_seq == 0
    assert (
        facts["writer_opened"].writer_opened.epoch,
        facts["writer_opened"].writer_opened.owner,
    ) == (*(1, "me"),)


def test_a_feed_goes_on_after_a_cursor(log: Calls) -> None:
    feed = Feed(log.stub, after_cursor=now(log))
    log.append(user("a"), user("b"))
    assert feed.of(log, count=1) == [(log.session_id, "0")]
    cursor = feed.cursor
    feed.cancel()
    again = Feed(log.stub, after_cursor=cursor)
    assert again.of(log, count=1) == [(log.session_id, "1")]
    again.cancel()


def test_a_feed_from_the_beginning_holds_every_session(log: Calls) -> None:
    log.append(user("a"))
    feed = Feed(log.stub)
    assert feed.of(log, count=2) == [(log.session_id, "created"), (log.session_id, "0")]
    feed.caught_up()
    log.append(user("b"))
    assert feed.of(log, count=1) == [(log.session_id, "1")]
    feed.cancel()


def test_bodies_can_be_left_out(log: Calls) -> None:
    cursor = now(log)
    log.append(user("a"))
    bare, whole = (Feed(log.stub, after_cursor=cursor, omit_bodies=omit) for omit in (True, False))
    for feed, has_body in ((bare, False), (whole, True)):
        element = feed.next()
        while element.session_id != log.session_id:
            element = feed.next()
        assert element.event.HasField("body") is has_body
        assert element.event.seq == 0
        feed.cancel()


def test_a_bad_cursor_is_refused(stub: Any) -> None:
    with refused("INVALID_FIELD") as told:
        Feed(stub, after_cursor="no such cursor").next()
    assert list(told.fields or {}) == ["after_cursor"]


def test_a_feed_misses_nothing_under_concurrent_writers(log: Calls) -> None:
    feed = Feed(log.stub, after_cursor=now(log))
    logs = [Calls.create(log.stub) for _ in range(6)]
    writers = [threading.Thread(target=_append_singly, args=(each, 20)) for each in logs]
    for writer in writers:
        writer.start()
    told = feed.of(*logs, count=6 * 21)
    for writer in writers:
        writer.join()
    feed.cancel()
    for each in logs:
        mine = [what for session_id, what in told if session_id == each.session_id]
        assert mine == ["created", *map(str, range(20))]


def _append_singly(log: Calls, count: int) -> None:
    for i in range(count):
        log.append(user(str(i)))


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_a_cursor_holds_over_a_restart(log: Calls, served: Served) -> None:
    cursor = now(log)
    log.append(user("a"))
    served.restart()
    log.append(user("b"))
    feed = Feed(log.stub, after_cursor=cursor)
    assert [what for _, what in feed.of(log, count=2)] == ["0", "1"]
    feed.cancel()
