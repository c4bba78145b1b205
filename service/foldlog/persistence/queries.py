"""The read statements of the event table, written once, with %s for each parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Query = tuple[str, list[object]]
EVENT = "originator_version, topic, state"
WHOLE = f"{EVENT}, notification_id, tenant, request_key"
EVENT_SIZE = "originator_version, length(state)"
NOTIFICATION = f"originator_id, {EVENT}, notification_id, tenant"
NOTIFICATION_SIZE = "notification_id, length(state)"


def events(
    table: str,
    key: object,
    gt: int | None,
    lte: int | None,
    desc: bool,
    limit: int | None,
    columns: str = EVENT,
) -> Query:
    """Select rows of one session in the order of their versions."""
    sql = f"SELECT {columns} FROM {table} WHERE originator_id = %s"
    parameters = [key]
    for test, value in ((">", gt), ("<=", lte)):
        if value is not None:
            sql += f" AND originator_version {test} %s"
            parameters.append(value)
    sql += f" ORDER BY originator_version {'DESC' if desc else 'ASC'}"
    if limit is not None:
        sql += " LIMIT %s"
        parameters.append(limit)
    return sql, parameters


def versions(key: object, wanted: Sequence[int]) -> Query:
    """Select the rows of one session that have these versions."""
    marks = ", ".join(["%s"] * len(wanted))
    sql = (
        f"SELECT {EVENT} FROM foldlog_events WHERE originator_id = %s"
        f" AND originator_version IN ({marks}) ORDER BY originator_version"
    )
    return sql, [key, *wanted]


def last_version(key: object) -> Query:
    """Select the highest version of one session."""
    sql = (
        "SELECT originator_version FROM foldlog_events WHERE originator_id = %s"
        " ORDER BY originator_version DESC LIMIT 1"
    )
    return sql, [key]


def request(key: object, request_key: bytes) -> Query:
    """Select the row of one session that carries a request key."""
    sql = f"SELECT {EVENT} FROM foldlog_events WHERE originator_id = %s AND request_key = %s"
    return sql, [key, request_key]


def notifications(
    start: int | None,
    stop: int | None,
    topics: Sequence[str],
    inclusive: bool,
    limit: int,
    columns: str = NOTIFICATION,
) -> Query:
    """Select rows in the feed's order; `stop` is inclusive."""
    clauses, parameters = ["TRUE"], list[object]()
    if start is not None:
        clauses.append(f"notification_id {'>=' if inclusive else '>'} %s")
        parameters.append(start)
    if stop is not None:
        clauses.append("notification_id <= %s")
        parameters.append(stop)
    if topics:
        clauses.append(f"topic IN ({', '.join(['%s'] * len(topics))})")
        parameters.extend(topics)
    sql = (
        f"SELECT {columns} FROM foldlog_events"
        f" WHERE {' AND '.join(clauses)} ORDER BY notification_id LIMIT %s"
    )
    return sql, [*parameters, limit]


def places(after_id: int, stop: int | None, limit: int) -> Query:
    """Select whose rows follow in the feed, and their sizes; `stop` is inclusive."""
    below = "" if stop is None else " AND notification_id <= %s"
    sql = (
        "SELECT notification_id, tenant, length(state) FROM foldlog_events"
        f" WHERE notification_id > %s{below} ORDER BY notification_id LIMIT %s"
    )
    return sql, [after_id, limit] if stop is None else [after_id, stop, limit]


def placed(notification_ids: Sequence[int]) -> Query:
    """Select the rows that have these places in the feed."""
    marks = ", ".join(["%s"] * len(notification_ids))
    sql = (
        f"SELECT {NOTIFICATION} FROM foldlog_events"
        f" WHERE notification_id IN ({marks}) ORDER BY notification_id"
    )
    return sql, [*notification_ids]


def changes(after_id: int, stop: int | None, limit: int) -> Query:
    """Select what changed, without the states; `stop` is inclusive."""
    below = "" if stop is None else " AND notification_id <= %s"
    sql = (
        "SELECT notification_id, originator_id, originator_version FROM foldlog_events"
        f" WHERE notification_id > %s{below} ORDER BY notification_id LIMIT %s"
    )
    return sql, [after_id, limit] if stop is None else [after_id, stop, limit]


def heads(tenant: str, after_id: int, stop: int, limit: int) -> Query:
    """Select places in the feed behind one that hold the newest rows of a tenant's sessions.

    The newest up to `stop`, inclusive. Versions are dense, so that a look-up tells.
    """
    sql = (
        "SELECT notification_id, originator_id, originator_version FROM foldlog_events e"
        " WHERE notification_id > %s AND notification_id <= %s AND tenant = %s AND NOT EXISTS"
        " (SELECT 1 FROM foldlog_events n WHERE n.originator_id = e.originator_id"
        " AND n.originator_version = e.originator_version + 1 AND n.notification_id <= %s)"
        " ORDER BY notification_id LIMIT %s"
    )
    return sql, [after_id, stop, tenant, stop, limit]


def last_notification(stop: int | None) -> Query:
    """Select the highest notification id, up to `stop`, inclusive."""
    where = "" if stop is None else " WHERE notification_id <= %s"
    sql = f"SELECT notification_id FROM foldlog_events{where} ORDER BY notification_id DESC LIMIT 1"
    return sql, [] if stop is None else [stop]


def distinct_values(
    rows: Callable[[Query], list[tuple[Any, ...]]], table: str, column: str
) -> list[str]:
    """Return the texts of a column in order, by jumping from one to the next in its index."""
    found: list[str] = []
    sql = f"SELECT min({column}) FROM {table} WHERE {column} > %s"
    while (following := rows((sql, [found[-1] if found else ""]))[0][0]) is not None:
        found.append(following)
    return found
