"""The reads of the event and checkpoint tables that are the same on every database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from foldlog.persistence import queries
from foldlog.persistence.columns import NOBODY, contents_of, version_of
from foldlog.persistence.errors import StoreDamagedError
from foldlog.persistence.recorder import AUDIT_ROWS, VERSIONS_AT_ONCE
from foldlog.persistence.rows import NO_STATE, NO_TOPIC, SessionNotification, WholeRow

PLACES_AT_ONCE = 5_000


class EventReader(ABC):
    """Reads rows of one session as `eventsourcing` values."""

    events_table_name: str

    @abstractmethod
    def _rows(self, query: queries.Query) -> list[tuple[Any, ...]]:
        """Run a query."""

    @abstractmethod
    def _key(self, originator_id: UUID | str) -> object:
        """Return an aggregate id as the database takes it."""

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> list[StoredEvent]:
        """Return rows by version: `gt` is exclusive, `lte` inclusive.

        With `max_bytes`, fewer than `limit` where their states would be larger together, but one.
        """
        table, key = self.events_table_name, self._key(originator_id)
        if max_bytes is not None:
            sizes = queries.events(table, key, gt, lte, desc, limit, queries.EVENT_SIZE)
            last = _last_within(max_bytes, self._rows(sizes))
            gt, lte = (gt, lte) if last is None else (last - 1, lte) if desc else (gt, last)
        return self._events(originator_id, queries.events(table, key, gt, lte, desc, limit))

    def _events(self, originator_id: UUID | str, query: queries.Query) -> list[StoredEvent]:
        return [stored_event(originator_id, *row) for row in self._rows(query)]


class FeedReader(EventReader):
    """Reads rows of all sessions in the feed's order as well."""

    @abstractmethod
    def _id(self, key: Any) -> UUID:
        """Return an aggregate id that the database gave."""

    @abstractmethod
    def _feed_stop(self, stop: int | None) -> int | None:
        """Return the last notification id to read now, at most `stop`, without missing a row."""

    def select_whole(self, originator_id: UUID, gt: int, max_bytes: int) -> list[WholeRow]:
        place = self.events_table_name, self._key(originator_id), gt
        sizes = queries.events(*place, None, False, AUDIT_ROWS, queries.EVENT_SIZE)
        last = _last_within(max_bytes, self._rows(sizes))
        if last is None:
            return []
        query = queries.events(*place, last, False, None, queries.WHOLE)
        return [whole_row(originator_id, *row) for row in self._rows(query)]

    def select_versions(self, originator_id: UUID, versions: Sequence[int]) -> list[StoredEvent]:
        found: list[StoredEvent] = []
        ascending = sorted(set(versions))
        for first in range(0, len(ascending), VERSIONS_AT_ONCE):
            wanted = ascending[first : first + VERSIONS_AT_ONCE]
            found += self._events(originator_id, self._wanted(self._key(originator_id), wanted))
        return found

    def _wanted(self, key: object, versions: Sequence[int]) -> queries.Query:
        return queries.versions(key, versions)

    def last_version(self, originator_id: UUID) -> int | None:
        rows = self._rows(queries.last_version(self._key(originator_id)))
        return version_of(rows[0][0]) if rows else None

    def find_request(self, originator_id: UUID, request_key: bytes) -> StoredEvent | None:
        query = queries.request(self._key(originator_id), request_key)
        return next(iter(self._events(originator_id, query)), None)

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
        max_bytes: int | None = None,
    ) -> list[SessionNotification]:
        which = (topics, inclusive_of_start, limit)
        last = self._feed_stop(stop)
        if max_bytes is not None:
            sizes = queries.notifications(start, last, *which, queries.NOTIFICATION_SIZE)
            last = _last_within(max_bytes, self._rows(sizes)) or last
        query = queries.notifications(start, last, *which)
        return [self._notification(*row) for row in self._rows(query)]

    def select_tenant_notifications(
        self, tenant: str, after_id: int, limit: int, max_bytes: int
    ) -> tuple[list[SessionNotification], int]:
        scanned = self._rows(queries.places(after_id, self._feed_stop(None), PLACES_AT_ONCE))
        if not scanned:
            return [], after_id
        own = [(place, size) for place, whose, size in scanned if whose == tenant]
        last = _last_within(max_bytes, own[:limit])
        wanted = [place for place, _ in own[:limit] if last is not None and place <= last]
        reached = scanned[-1][0] if len(wanted) == len(own) else wanted[-1]
        if not wanted:
            return [], reached
        return [self._notification(*row) for row in self._rows(queries.placed(wanted))], reached

    def count_tenant_rows(self, tenant: str, after_id: int, most: int) -> int:
        count, stop = 0, self._feed_stop(None)
        while count < most:
            scanned = self._rows(queries.places(after_id, stop, PLACES_AT_ONCE))
            if not scanned:
                break
            count += sum(whose == tenant for _, whose, _ in scanned)
            after_id = scanned[-1][0]
        return min(count, most)

    def select_changes(self, after_id: int, limit: int) -> list[tuple[int, UUID, int]]:
        query = queries.changes(after_id, self._feed_stop(None), limit)
        return [self._place(*row) for row in self._rows(query)]

    def select_heads(
        self, tenant: str, after_id: int, stop: int, limit: int
    ) -> list[tuple[int, UUID, int]]:
        found = self._rows(queries.heads(tenant, after_id, stop, limit))
        return [self._place(*row) for row in found]

    def max_notification_id(self) -> int | None:
        """Return the id of the feed's last row that may be read now."""
        rows = self._rows(queries.last_notification(self._feed_stop(None)))
        return rows[0][0] if rows else None

    def last_stored_id(self) -> int:
        rows = self._rows(queries.last_notification(None))
        return rows[0][0] if rows else 0

    def _notification(self, *row: Any) -> SessionNotification:
        return notification(self._id, *row)

    def _place(self, *row: Any) -> tuple[int, UUID, int]:
        return placed(self._id, *row)


def placed(
    id_of: Callable[[Any], UUID], place: int, key: object, version: object
) -> tuple[int, UUID, int]:
    """Return whose row stands at a place of the feed: nobody's version 0 if it does not say.

    The feed goes on behind such a row, as it does behind any that is damaged.
    """
    try:
        return place, id_of(key), version_of(version)
    except StoreDamagedError:
        return place, NOBODY, 0


def notification(
    id_of: Callable[[Any], UUID],
    key: object,
    version: object,
    topic: object,
    state: object,
    place: int,
    tenant: str,
) -> SessionNotification:
    """Return a row of the feed; without contents if it does not say whose it is."""
    _, id_, found = placed(id_of, place, key, version)
    contents = (NO_TOPIC, NO_STATE) if id_ == NOBODY else contents_of(topic, state)
    return SessionNotification(id_, found, *contents, place, tenant)


def stored_event(originator_id: UUID | str, version: object, *contents: object) -> StoredEvent:
    """Return a row of a session. Raises StoreDamagedError if it does not say its version."""
    return StoredEvent(originator_id, version_of(version), *contents_of(*contents))


def whole_row(
    originator_id: UUID, version: object, topic: object, state: object, *rest: Any
) -> WholeRow:
    """Return a row of a session with every column, in the same way."""
    return WholeRow(originator_id, version_of(version), *contents_of(topic, state), *rest)


def _last_within(max_bytes: int, sizes: Sequence[tuple[int, int]]) -> int | None:
    """Return the last row, of those given with their sizes, that fits: at least the first."""
    total, last = 0, None
    for place, size in sizes:
        total += size
        if last is not None and total > max_bytes:
            break
        last = place
    return last
