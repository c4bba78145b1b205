"""Reading around damaged pages: the rows that cannot be read are told from those that can.

SQLite gives up a whole query at the first damaged page. The index of versions lies in other pages
and tells which rows there are, so that each can be read by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from foldlog.persistence import queries
from foldlog.persistence.columns import id_of
from foldlog.persistence.errors import StoreDamagedError
from foldlog.persistence.reading import notification, placed, stored_event, whole_row
from foldlog.persistence.rows import NO_STATE, NO_TENANT, NO_TOPIC, SessionNotification, WholeRow

Rows = Callable[[queries.Query], list[tuple[Any, ...]]]

INDEX = "foldlog_events INDEXED BY foldlog_events_version"
TENANT = "SELECT tenant FROM foldlog_sessions WHERE aggregate_id = %s"
FEW = 20  # rows at a time where their sizes cannot be told: a row has 4 MiB at most
ALL = -1  # as a limit
PLACES = f"SELECT notification_id, originator_id, originator_version FROM {INDEX}"


def versions(
    rows: Rows, key: object, gt: int | None, lte: int | None, desc: bool, limit: int | None
) -> list[int]:
    """Return which versions of a session there are, from the index alone."""
    found = rows(queries.events(INDEX, key, gt, lte, desc, limit, "originator_version"))
    return [version for (version,) in found]


def events(
    rows: Rows, originator_id: UUID, wanted: Sequence[int], max_bytes: int | None = None
) -> Iterator[StoredEvent]:
    """Yield the rows of these versions that there are, without contents where they are lost."""
    size = 0
    for version in wanted:
        found = _read(rows, queries.versions(originator_id.bytes, [version]))
        lost = [(version, NO_TOPIC, NO_STATE)]
        for row in lost if found is None else found:
            stored = stored_event(originator_id, *row)
            size += len(stored.state)
            if max_bytes is not None and size > max_bytes and version != wanted[0]:
                return
            yield stored


def whole(rows: Rows, originator_id: UUID, wanted: Sequence[int]) -> Iterator[WholeRow]:
    """Yield the same with every column; of a lost row, its place and nothing more."""
    for version in wanted:
        one = (originator_id.bytes, version - 1, version, False, None)
        found = _read(rows, queries.events("foldlog_events", *one, queries.WHOLE))
        if found is None:
            ((place,),) = rows(queries.events(INDEX, *one, "notification_id"))
            found = [(version, NO_TOPIC, NO_STATE, place)]
        for row in found:
            yield whole_row(originator_id, *row)


def places(rows: Rows, after: int, stop: int | None, limit: int) -> list[tuple[int, UUID, int]]:
    """Return (notification id, aggregate id, version) of the feed's rows, from the index alone.

    It is read whole.
    """
    stopped, parameters = ("", [after]) if stop is None else (" AND rowid <= %s", [after, stop])
    sql = f"{PLACES} WHERE rowid > %s{stopped} ORDER BY rowid LIMIT %s"
    found = rows((sql, [*parameters, limit]))
    return [placed(id_of, *row) for row in found]


def heads(
    rows: Rows, tenant: str, after: int, stop: int, limit: int
) -> Iterator[tuple[int, UUID, int]]:
    """Yield those of a tenant's newest rows up to a place that lie behind another place."""
    newest = {id_: place for place, id_, _ in places(rows, 0, stop, ALL)}
    found = (each for each in places(rows, after, stop, ALL) if newest[each[1]] == each[0])
    return islice((each for each in found if _tenant(rows, each[1]) == tenant), limit)


def count(rows: Rows, tenant: str, after: int, most: int) -> int:
    """Return how many rows of a tenant lie behind a place, up to as many as matter."""
    of_session = Counter(id_ for _, id_, _ in places(rows, after, None, ALL))
    return min(most, sum(n for id_, n in of_session.items() if _tenant(rows, id_) == tenant))


def notifications(
    rows: Rows, wanted: Sequence[tuple[int, UUID, int]]
) -> Iterator[SessionNotification]:
    """Yield the feed's rows at these places, without contents where they are lost."""
    for place, aggregate_id, version in wanted:
        found = _read(rows, queries.placed([place]))
        if found is None:
            whose = _tenant(rows, aggregate_id)
            found = [(aggregate_id.bytes, version, NO_TOPIC, NO_STATE, place, whose)]
        for row in found:
            yield notification(id_of, *row)


def _tenant(rows: Rows, aggregate_id: UUID) -> str:
    """Return whose session a lost row is of: nobody's if that is lost, too."""
    found = rows((TENANT, [aggregate_id.bytes]))
    return str(found[0][0]) if found else NO_TENANT


def _read(rows: Rows, query: queries.Query) -> list[tuple[Any, ...]] | None:
    """Return what a query of one row gives, or None if its page is damaged."""
    try:
        return rows(query)
    except StoreDamagedError:
        return None
