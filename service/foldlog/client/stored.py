"""Events and facts as the service has them, and what a watch says beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import TypeAlias

from foldlog.client.bodies import Body, body_from_proto
from foldlog.codec import datetime_of
from foldlog.v1 import event_pb2


class EventState(IntEnum):
    """Whether and why an event does not count now. The numbers are those of the wire."""

    UNSPECIFIED = 0
    LIVE = 1
    SHADOWED = 2
    UNDONE = 3


@dataclass(frozen=True, slots=True)
class AppliedReplace:
    """A replace as it is stored: the positions, both ends in, and the seqs it shadowed."""

    start: int
    stop: int
    shadowed_seqs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of a session's log.

    `type` is an EventType, or the number of a type of a newer release. `encoded_body` is what the
    worker sent, byte for byte; None where history was dropped. `state` is told by `events()` only.
    `request_next_seq` stands on step_starts: the next_seq the step's request is built at.
    """

    seq: int
    type: int
    time_ns: int
    encoded_body: bytes | None = field(default=None, repr=False)
    position: int | None = None
    replace: AppliedReplace | None = None
    request_id: str = ""
    state: EventState = EventState.UNSPECIFIED
    state_seq: int | None = None
    dropped: bool = False
    chain: bytes = field(default=b"", repr=False)
    request_next_seq: int | None = None

    @property
    def time(self) -> datetime:
        """When it happened, in UTC, cut to whole microseconds."""
        return datetime_of(self.time_ns)

    @property
    def body(self) -> Body | None:
        """What the worker said. Decoded at each access; None where history was dropped."""
        return None if self.encoded_body is None else body_from_proto(self._decoded())

    @property
    def group(self) -> str | None:
        """What ties it to the other events that were one message for the provider."""
        pb = self._decoded()
        return pb.group if pb.HasField("group") else None

    @property
    def extra_json(self) -> str | None:
        """Free JSON text that was stored with it."""
        pb = self._decoded()
        return pb.extra_json if pb.HasField("extra_json") else None

    def _decoded(self) -> event_pb2.EventBody:
        return event_pb2.EventBody.FromString(self.encoded_body or b"")


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Everything stored when the watch began has been sent. A feed gives no next_seq."""

    next_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Created:
    """A session was created."""

    labels: Mapping[str, str]
    metadata_json: str


@dataclass(frozen=True, slots=True)
class Forked:
    """A session was forked from another, sharing its events up to at_seq; -1 for none."""

    parent_session_id: str
    at_seq: int
    labels: Mapping[str, str]
    metadata_json: str


@dataclass(frozen=True, slots=True)
class Updated:
    """Labels or metadata changed: all of both, from now on."""

    labels: Mapping[str, str]
    metadata_json: str


@dataclass(frozen=True, slots=True)
class WriterOpened:
    """A writer epoch began."""

    epoch: int
    owner: str


@dataclass(frozen=True, slots=True)
class WriterClosed:
    """The writer epoch ended."""

    epoch: int


@dataclass(frozen=True, slots=True)
class HistoryDropped:
    """Bodies of events that no longer count were dropped: ranges of seqs, both ends in."""

    whole_from_seq: int
    dropped: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """The session was deleted."""


@dataclass(frozen=True, slots=True)
class UnknownFact:
    """A fact of a newer release."""


FactKind: TypeAlias = (
    Created
    | Forked
    | Updated
    | WriterOpened
    | WriterClosed
    | HistoryDropped
    | Deleted
    | UnknownFact
)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something about a session that is not in its log and has no seq."""

    time_ns: int
    kind: FactKind

    @property
    def time(self) -> datetime:
        """When it happened, in UTC, cut to whole microseconds."""
        return datetime_of(self.time_ns)


WatchItem: TypeAlias = Event | CaughtUp | HistoryDropped | Deleted


@dataclass(frozen=True, slots=True)
class FeedItem:
    """One element of the feed of every session. `cursor` says where to go on after it."""

    cursor: str
    session_id: str
    item: Event | Fact | CaughtUp
