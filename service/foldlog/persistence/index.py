"""The session index: what listings read, kept up to date from the feed, exactly once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from eventsourcing.persistence import Tracking, TrackingRecorder

from foldlog.persistence.ledger import CallQuery, LoggedCall, UnresolvedCall
from foldlog.persistence.rows import DEFAULT_TENANT

if TYPE_CHECKING:
    from foldlog.persistence.entries import IndexEntry

INDEX_NAME = "sessions"
TABLES = ("sessions", "session_terms", "lineage", "call_ledger")


class PageTokenError(ValueError):
    """A page token was not given by this query."""


class Instant(NamedTuple):
    """A time: whole seconds since 1970, UTC, and nanoseconds of that second."""

    s: int
    ns: int = 0


class Ancestor(NamedTuple):
    """An ancestor whose rows a fork reads, to a version, inclusive."""

    aggregate_id: UUID
    to_version: int


@dataclass(frozen=True, slots=True)
class SessionCreated:
    """What the first row of a session tells the index."""

    session_id: str
    create_time: Instant
    parent_session_id: str | None = None
    parent_at_seq: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata_json: str = ""
    segments: tuple[Ancestor, ...] = ()


class IndexChange(NamedTuple):
    """What a stretch of the feed changes in one session's entry; unset parts stay.

    `custom` are the (kind, key) pairs of its custom events, with an empty key for one without keys;
    `calls` what bears on its dispatched tool calls, in the order of the log; `size_bytes` what its
    new rows come to. With `erasing` its erasure is under way from now on.
    A change to a session that the index does not have, without `created`, is ignored.
    """

    aggregate_id: UUID
    tenant: str = DEFAULT_TENANT
    created: SessionCreated | None = None
    labels: Mapping[str, str] | None = None
    metadata_json: str | None = None
    next_seq: int | None = None
    update_time: Instant | None = None
    custom: tuple[tuple[str, str], ...] = ()
    calls: tuple[LoggedCall, ...] = ()
    deleted: bool = False
    erasing: bool = False
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """Which sessions to list; every filter that is set applies."""

    tenant: str = DEFAULT_TENANT
    page_size: int = 50
    page_token: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    parent_session_id: str = ""
    created_from: Instant | None = None
    created_before: Instant | None = None
    updated_from: Instant | None = None
    custom_key: str = ""
    custom_kind: str = ""
    without_session_id: str = ""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One session as the index has it."""

    aggregate_id: UUID
    session_id: str
    next_seq: int
    labels: Mapping[str, str]
    metadata_json: str
    create_time: Instant
    update_time: Instant
    parent_session_id: str | None
    parent_at_seq: int | None


@dataclass(frozen=True, slots=True)
class IndexPage:
    """A page, the newest session first; an empty token means that it is the last."""

    rows: tuple[IndexRow, ...]
    next_page_token: str = ""


class SessionIndex(TrackingRecorder):
    """Keeps and reads the index. Methods block, and any thread may call them."""

    @abstractmethod
    def apply(
        self, changes: Sequence[IndexChange], tracking: Tracking, after_id: int | None = None
    ) -> None:
        """Apply the changes and move the position, in one transaction.

        Raises IntegrityError, and changes nothing, unless the position grows, from `after_id` if
        that is given: another process was faster, and has applied some of it.
        """

    @abstractmethod
    def rebuild(self, stretches: Callable[[], Iterable[Sequence[IndexChange]]], place: int) -> None:
        """Put what the stretches of the log come to in place of all that is there.

        In one transaction, after which the position is the place up to which they reach. Erasures
        that are under way stay noted, and nothing is counted. May ask for the stretches twice.
        """

    def position(self) -> int | None:
        """Return the notification id up to which the feed was applied."""
        return self.max_tracking_id(INDEX_NAME)

    @abstractmethod
    def list_sessions(self, query: IndexQuery) -> IndexPage:
        """Return a page of the sessions that are not deleted: the newest first, then by id.

        Raises PageTokenError for a token that is not of this query.
        """

    @abstractmethod
    def entry(self, aggregate_id: UUID) -> IndexEntry | None:
        """Return all that the index holds of a session, deleted or not."""

    @abstractmethod
    def find_session(self, aggregate_id: UUID) -> IndexRow | None:
        """Return one session's entry, unless it is deleted."""

    @abstractmethod
    def forks_reading(self, aggregate_id: UUID) -> list[tuple[UUID, str, int]]:
        """Return (aggregate id, session id, version up to which it reads) of each fork that
        reads rows of this session, deleted forks left out."""

    @abstractmethod
    def list_unresolved(self, query: CallQuery) -> list[UnresolvedCall]:
        """Return unresolved calls of sessions that are not deleted, the oldest first.

        One more than the page holds, if there are more. Raises CallTokenError for a token that is
        not of this query.
        """
