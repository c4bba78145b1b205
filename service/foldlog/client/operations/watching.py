"""Operations that follow what happens, over any number of connections."""

from __future__ import annotations

import logging
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import Message as ProtoMessage

from foldlog.client.decoding import feed_item_from_proto, watch_item_from_proto
from foldlog.client.encoding import request
from foldlog.client.errors import ConnectionLostError
from foldlog.client.methods import WATCH_ALL_EVENTS, WATCH_EVENTS, Method
from foldlog.client.retries import Attempts
from foldlog.client.state import ClientState, S, SessionState
from foldlog.client.steps import Emission, Emit, Failure, Open, Receive
from foldlog.client.stored import CaughtUp, Deleted, Event, FeedItem, WatchItem
from foldlog.core.errors import SessionDeletedError
from foldlog.internal.v1 import raw_pb2
from foldlog.v1 import service_pb2 as pb

logger: Final = logging.getLogger("foldlog.client")
ENDED: Final = "the server ended the watch"
Item = TypeVar("Item")
Said = TypeVar("Said", covariant=True)


class Place(Protocol[Said]):
    """How far a watch has got: where to go on, and what is new in an answer."""

    ended: bool

    def request(self) -> ProtoMessage:
        """Return the request that goes on from here."""

    def take(self, answer: Any) -> Said | None:
        """Move past an answer and return what it says that was not said before."""


class SessionPlace:
    """How far a session's watch has got."""

    def __init__(self, session_id: str, from_seq: int) -> None:
        self._asked = request(pb.WatchEventsRequest, session_id=session_id, from_seq=from_seq)
        self._has_caught_up = False
        self.begun = False
        self.ended = False

    def request(self) -> pb.WatchEventsRequest:
        """Return the request that goes on from here."""
        return self._asked

    def take(self, answer: raw_pb2.RawWatchEventsResponse) -> WatchItem | None:
        """Move past an answer; an event that was given, or a second CaughtUp, is nothing new."""
        self.begun = True
        item = watch_item_from_proto(answer)
        match item:
            case Event(seq):
                if seq < self._asked.from_seq:
                    return None
                self._asked.from_seq = seq + 1
            case CaughtUp():
                if self._has_caught_up:
                    return None
                self._has_caught_up = True
            case Deleted():
                self.ended = True
        return item


class FeedPlace:
    """How far a watch of every session has got."""

    ended = False

    def __init__(self, after_cursor: str, from_now: bool, omit_bodies: bool) -> None:
        self._asked = request(
            pb.WatchAllEventsRequest,
            after_cursor=after_cursor,
            from_now=from_now,
            omit_bodies=omit_bodies,
        )
        self._has_caught_up = False

    def request(self) -> pb.WatchAllEventsRequest:
        """Return the request that goes on from here."""
        return self._asked

    def take(self, answer: raw_pb2.RawWatchAllEventsResponse) -> FeedItem | None:
        """Move past an answer; a second CaughtUp is nothing new."""
        if answer.cursor:
            self._asked.after_cursor = answer.cursor
            self._asked.from_now = False
        item = feed_item_from_proto(answer)
        if item is not None and isinstance(item.item, CaughtUp):
            if self._has_caught_up:
                return None
            self._has_caught_up = True
        return item


def watch(
    session: SessionState, from_seq: int = 0, *, max_outage_s: float | None = None
) -> Emission[WatchItem]:
    """Iterate over the session's events as they come, from a seq on: Event values, each once.

    Among them come CaughtUp, once, after everything that was stored at the beginning;
    HistoryDropped; and Deleted, which ends it. A lost connection is made again, without gap or
    duplicate. An outage longer than max_outage_s raises; None waits for ever. The first connection
    is to succeed within the client's timeout.
    """
    place = SessionPlace(session.session_id, from_seq)
    items: Emission[WatchItem] = _follow(session.client, WATCH_EVENTS, place, max_outage_s)
    try:
        yield from items
    except SessionDeletedError:
        if not place.begun:
            raise
        yield Emit(Deleted())


def watch_all(
    client: ClientState[S],
    after_cursor: str = "",
    *,
    from_now: bool = False,
    omit_bodies: bool = False,
    max_outage_s: float | None = None,
) -> Emission[FeedItem]:
    """Iterate over the events and facts of every session as they come, each once.

    Goes on after the cursor of an element that was given before; without one, from the beginning,
    or from the present. Connections are as in a session's watch.
    """
    place = FeedPlace(after_cursor, from_now, omit_bodies)
    return _follow(client, WATCH_ALL_EVENTS, place, max_outage_s)


def _follow(
    client: ClientState[Any], method: Method[Any], place: Place[Item], max_outage_s: float | None
) -> Emission[Item]:
    attempts = Attempts(client.retry, client.timeout_s)
    while not place.ended:
        stream = yield Open(method, place.request())
        try:
            answer = yield Receive(stream)
            if not _is_lost(answer):
                attempts = Attempts(client.retry, max_outage_s)
            while not _is_lost(answer) and not place.ended:
                item = place.take(answer)
                if item is not None:
                    yield Emit(item)
                if not place.ended:
                    answer = yield Receive(stream)
        finally:
            stream.cancel()
        if not place.ended:
            failure = answer or Failure(ConnectionLostError(status="OK", details=ENDED), True)
            logger.warning("watch_interrupted", extra={"error": type(failure.error).__name__})
            yield from attempts.after(failure)


def _is_lost(answer: object) -> bool:
    return answer is None or isinstance(answer, Failure)
