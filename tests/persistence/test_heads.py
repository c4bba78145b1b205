"""The newest rows of sessions, page by page."""

from __future__ import annotations

from uuid import UUID, uuid4

from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store

from tests.persistence.stores import rows


def paged(store: Store, after: int, stop: int, limit: int) -> list[tuple[UUID, int]]:
    """Return the heads, asked for page by page."""
    found: list[tuple[UUID, int]] = []
    while page := store.recorder.select_heads("default", after, stop, limit):
        found += [(id_, version) for _, id_, version in page]
        after = page[-1][0]
    return found


def test_the_newest_row_of_each_session_is_given_once_in_the_order_of_the_feed(
    store: Store,
) -> None:
    ids = [uuid4() for _ in range(5)]
    for version in range(1, 4):
        for id_ in ids:
            store.recorder.insert_events(rows(id_, 1, version))
    stop = store.recorder.max_notification_id() or 0
    assert paged(store, 0, stop, 2) == [(id_, 3) for id_ in ids]


def test_only_sessions_with_rows_behind_an_id_are_given_as_they_were_at_the_stop(
    store: Store,
) -> None:
    old, new = uuid4(), uuid4()
    store.recorder.insert_events(rows(old, 2))
    after = store.recorder.max_notification_id() or 0
    store.recorder.insert_events(rows(new, 2))
    stop = store.recorder.max_notification_id() or 0
    store.recorder.insert_events([*rows(old, 1, 3), *rows(new, 1, 3)])
    assert paged(store, after, stop, 1) == [(new, 2)]
    newest = store.recorder.max_notification_id() or 0
    assert sorted(paged(store, after, newest, 1)) == sorted([(old, 3), (new, 3)])


def test_another_tenants_sessions_are_not_given(store: Store) -> None:
    theirs = SessionStoredEvent(uuid4(), 1, "topic", b"state", tenant="other")
    store.recorder.insert_events([theirs])
    stop = store.recorder.max_notification_id() or 0
    assert paged(store, 0, stop, 10) == []
