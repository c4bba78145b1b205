"""A watch is one sequence over any number of connections."""

from __future__ import annotations

import pytest
from foldlog import CaughtUp, Deleted, Event, HistoryDropped, errors
from foldlog.client.operations import watching
from foldlog.client.steps import Failure
from foldlog.internal.v1 import raw_pb2
from foldlog.v1 import event_pb2
from foldlog.v1 import service_pb2 as pb

from tests.client.driving import END, LOST, Driven, State, session

SLOW = Failure(errors.SlowReaderError(cursor="4"), is_transient=True)
GONE = Failure(errors.SessionDeletedError(session_id="s1"))
CAUGHT_UP = raw_pb2.RawWatchEventsResponse(caught_up=pb.CaughtUp(next_seq=2))
DELETED = raw_pb2.RawWatchEventsResponse(deleted=event_pb2.DeletedFact())
DROPPED = raw_pb2.RawWatchEventsResponse(
    history_dropped=event_pb2.HistoryDroppedFact(
        whole_from_seq=3, dropped=[event_pb2.SeqRange(first=0, last=1)]
    )
)
NEWER = raw_pb2.RawWatchEventsResponse.FromString(b"\xfa\x01\x01x")


def event(seq: int) -> raw_pb2.RawWatchEventsResponse:
    """Return an answer with an event."""
    return raw_pb2.RawWatchEventsResponse(event=raw_pb2.RawEvent(seq=seq, body=b""))


def element(cursor: str, *, caught_up: bool = False) -> raw_pb2.RawWatchAllEventsResponse:
    """Return an answer of the feed."""
    if caught_up:
        return raw_pb2.RawWatchAllEventsResponse(cursor=cursor, caught_up=pb.CaughtUp())
    raw = raw_pb2.RawEvent(seq=0)
    return raw_pb2.RawWatchAllEventsResponse(cursor=cursor, session_id="s1", event=raw)


def seqs(driven: Driven) -> list[int]:
    """Return the seqs of the events that were handed out."""
    return [item.seq for item in driven.emitted if isinstance(item, Event)]


@pytest.mark.parametrize("outage", [LOST, SLOW, END], ids=["lost", "slow", "ended"])
def test_a_watch_goes_on_from_the_seq_after_the_last(outage: object) -> None:
    driven = Driven(watching.watch(session(), 3), [event(3), event(7), outage, event(8)])
    assert [asked.from_seq for asked in driven.asked] == [3, 8]
    assert seqs(driven) == [3, 7, 8]
    assert driven.streams[0].cancelled


def test_an_event_that_was_given_is_not_given_twice() -> None:
    assert seqs(Driven(watching.watch(session()), [event(0), event(0), event(1)])) == [0, 1]


def test_catching_up_is_said_once() -> None:
    answers = [event(0), CAUGHT_UP, LOST, CAUGHT_UP, event(1)]
    driven = Driven(watching.watch(session()), answers)
    assert driven.emitted[1] == CaughtUp(2)
    assert len(driven.emitted) == 3


def test_dropped_history_is_told_and_what_is_newer_is_passed_over() -> None:
    driven = Driven(watching.watch(session()), [NEWER, DROPPED])
    assert driven.emitted == [HistoryDropped(3, ((0, 1),))]


def test_a_deletion_ends_the_watch() -> None:
    driven = Driven(watching.watch(session()), [event(0), DELETED, event(1)])
    assert driven.emitted[1:] == [Deleted()]
    assert len(driven.asked) == 1


def test_a_deletion_during_an_outage_ends_the_watch_alike() -> None:
    driven = Driven(watching.watch(session()), [event(0), LOST, GONE])
    assert driven.emitted[1:] == [Deleted()]


def test_a_session_that_was_deleted_before_is_an_error() -> None:
    with pytest.raises(errors.SessionDeletedError):
        Driven(watching.watch(session()), [GONE])


def test_a_first_connection_is_to_succeed_within_the_timeout() -> None:
    with pytest.raises(errors.ConnectionLostError):
        Driven(watching.watch(session(timeout_s=0.01)), [LOST] * 5)


def test_an_outage_may_last_for_ever_unless_told_otherwise() -> None:
    outage = [event(0), *[LOST] * 40, event(1)]
    assert seqs(Driven(watching.watch(session(timeout_s=0.2)), outage)) == [0, 1]
    with pytest.raises(errors.ConnectionLostError):
        Driven(watching.watch(session(), max_outage_s=0.2), outage)


def test_the_feed_goes_on_after_the_last_cursor() -> None:
    answers = [element("c1", caught_up=True), element("c2"), LOST, element("c3")]
    driven = Driven(watching.watch_all(State("nowhere"), from_now=True), answers)
    assert [asked.after_cursor for asked in driven.asked] == ["", "c2"]
    assert [asked.from_now for asked in driven.asked] == [True, False]
    assert [item.cursor for item in driven.emitted] == ["c1", "c2", "c3"]


def test_the_feed_says_once_that_it_has_caught_up() -> None:
    caught_up = element("c1", caught_up=True)
    driven = Driven(watching.watch_all(State("nowhere")), [caught_up, LOST, caught_up])
    assert len(driven.emitted) == 1
