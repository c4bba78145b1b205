"""Reading around damaged pages: the rows that cannot be read are told from those that can.

SQLite gives up a whole query at the first damaged page. The index of versions lies in other pages
and tells which rows there are, so that each can be read by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from foldlog.persistence import queries
from foldlog.persistence.columns import id_of
from foldlog.persistence.errors import StoreDamagedError
from foldlog.persistence.rows import NO_STATE, NO_TOPIC, SessionNotification

Rows = Callable[[queries.Query], list[tuple[Any, ...]]]

INDEX = "foldlog_events INDEXED BY foldlog_events_version"
TENANT = "SELECT tenant FROM foldlog_sessions WHERE aggregate_id = %s"
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
            size += len(row[2])
            if max_bytes is not None and size > max_bytes and version != wanted[0]:
                return
            yield StoredEvent(originator_id, *row)


def places(rows: Rows, after: int, stop: int | None, limit: int) -> list[tuple[int, UUID, int]]:
    """Return (notification id, aggregate id, version) of the feed's rows, from the index alone.

    It is read whole.
    """
    stopped, parameters = ("", [after]) if stop is None else (" AND rowid <= %s", [after, stop])
    sql = f"{PLACES} WHERE rowid > %s{stopped} ORDER BY rowid LIMIT %s"
    found = rows((sql, [*parameters, limit]))
    return [(place, id_of(key), version) for place, key, version in found]


def notifications(
    rows: Rows, wanted: Sequence[tuple[int, UUID, int]]
) -> Iterator[SessionNotification]:
    """Yield the feed's rows at these places, without contents where they are lost."""
    for place, aggregate_id, version in wanted:
        found = _read(rows, queries.placed([place]))
        if found is None:
            whose = _tenant(rows, aggregate_id)
            found = [(b"", version, NO_TOPIC, NO_STATE, place, whose)]
        for _, *row in found:
            yield SessionNotification(aggregate_id, *row)


def _tenant(rows: Rows, aggregate_id: UUID) -> str:
    """Return whose session a lost row is of. Raises StoreDamagedError if that is lost, too."""
    found = rows((TENANT, [aggregate_id.bytes]))
    if not found:
        raise StoreDamagedError("whose a lost row is cannot be told")
    return str(found[0][0])


def _read(rows: Rows, query: queries.Query) -> list[tuple[Any, ...]] | None:
    """Return what a query of one row gives, or None if its page is damaged."""
    try:
        return rows(query)
    except StoreDamagedError:
        return None
