"""The feed of one tenant among others."""

from __future__ import annotations

from uuid import UUID

import pytest
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store


@pytest.fixture
def recorder(store: Store) -> SessionRecorder:
    return store.recorder


def add(recorder: SessionRecorder, tenant: str, number: int, state: bytes = b"state") -> None:
    row = SessionStoredEvent(UUID(int=number), 1, "t", state, tenant=tenant)
    recorder.insert_events([row])


def told(recorder: SessionRecorder, tenant: str, limit: int, max_bytes: int) -> list[int]:
    """Return the sessions' numbers in the order in which the feed tells them, to its end."""
    found: list[int] = []
    place = 0
    while True:
        rows, reached = recorder.select_tenant_notifications(tenant, place, limit, max_bytes)
        assert all(row.tenant == tenant and place < row.id <= reached for row in rows)
        found += [UUID(str(row.originator_id)).int for row in rows]
        if reached == place:
            return found
        place = reached


@pytest.mark.parametrize(("limit", "max_bytes"), [(100, 10**6), (1, 10**6), (2, 6), (100, 1)])
def test_it_tells_a_tenants_rows_once_and_nobody_elses(
    recorder: SessionRecorder, limit: int, max_bytes: int
) -> None:
    for number in range(1, 31):
        add(recorder, "ab"[number % 3 == 0], number)
    assert told(recorder, "b", limit, max_bytes) == list(range(3, 31, 3))
    assert told(recorder, "a", limit, max_bytes) == [n for n in range(1, 31) if n % 3]
    assert told(recorder, "c", limit, max_bytes) == []


def test_a_tenants_rows_after_a_place_are_counted_as_far_as_they_matter(
    recorder: SessionRecorder,
) -> None:
    for number in range(1, 31):
        add(recorder, "ab"[number % 3 == 0], number)
    (first, *_), _ = recorder.select_tenant_notifications("b", 0, 1, 10**6)
    assert recorder.count_tenant_rows("b", 0, 100) == 10
    assert recorder.count_tenant_rows("b", first.id, 100) == 9
    assert recorder.count_tenant_rows("b", 0, 4) == 4
    assert recorder.count_tenant_rows("c", 0, 4) == 0


def test_it_goes_past_more_rows_of_others_than_are_looked_at_once(
    recorder: SessionRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldlog.persistence.reading.PLACES_AT_ONCE", 4)
    for number in range(1, 11):
        add(recorder, "b" if number == 10 else "a", number)
    assert told(recorder, "b", 100, 10**6) == [10]
