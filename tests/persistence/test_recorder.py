"""The event recorder's contract, on every kind of store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent
from foldlog.persistence.errors import DuplicateRowError, UnavailableError
from foldlog.persistence.recorder import TRANSACTION_ROWS
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store

from tests.persistence.stores import row, rows


def test_ids_come_in_the_order_of_the_input_whatever_the_order_of_sessions(store: Store) -> None:
    sessions = [uuid4() for _ in range(5)]
    mixed = [each for session in sessions for each in rows(session, 300)]
    Random(3).shuffle(mixed)
    ids = store.recorder.insert_events(mixed)
    given = {
        place: (r.originator_id, r.originator_version) for place, r in zip(ids, mixed, strict=True)
    }
    found = store.recorder.select_changes(0, 2_000)
    assert given == {place: (session, version) for place, session, version in found}


def test_within_a_session_ids_rise_with_versions(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events(rows(session, 50))
    store.recorder.insert_chunks([rows(session, 30, 51), rows(session, 20, 81)])
    assert [version for _, _, version in store.recorder.select_changes(0, 200)] == [*range(1, 101)]


def test_a_taken_version_is_told_and_nothing_is_written(store: Store) -> None:
    session, other = uuid4(), uuid4()
    store.recorder.insert_events(rows(session, 3))
    with pytest.raises(DuplicateRowError) as caught:
        store.recorder.insert_events([*rows(other, 2), row(session, 3)])
    assert caught.value.constraint == "version"
    assert store.recorder.last_version(other) is None


def test_a_taken_request_key_is_told_and_nothing_is_written(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events([row(session, 1, request_key=b"a")])
    with pytest.raises(DuplicateRowError) as caught:
        store.recorder.insert_events([row(session, 2), row(session, 3, request_key=b"a")])
    assert caught.value.constraint == "request"
    assert store.recorder.last_version(session) == 1


def test_a_row_that_collides_by_both_tells_the_version(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events([row(session, 1, request_key=b"a")])
    with pytest.raises(DuplicateRowError) as caught:
        store.recorder.insert_events([row(session, 1, request_key=b"a")])
    assert caught.value.constraint == "version"


def test_a_collision_within_one_call_is_told(store: Store) -> None:
    session = uuid4()
    with pytest.raises(DuplicateRowError) as caught:
        store.recorder.insert_events(
            [row(session, 1, request_key=b"a"), row(session, 2, request_key=b"a")]
        )
    assert caught.value.constraint == "request"


def test_a_request_key_is_unique_in_its_session_only(store: Store) -> None:
    one, other = uuid4(), uuid4()
    store.recorder.insert_events([row(one, 1, request_key=b"a"), row(other, 1, request_key=b"a")])
    assert store.recorder.find_request(other, b"a") == StoredEvent(other, 1, "topic", b"state")


def test_rows_without_request_keys_do_not_collide(store: Store) -> None:
    store.recorder.insert_events(rows(uuid4(), 5))
    assert len(store.recorder.select_changes(0, 10)) == 5


def test_a_request_that_was_never_made_is_not_found(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events([row(session, 1, request_key=b"a")])
    assert store.recorder.find_request(session, b"b") is None
    assert store.recorder.find_request(uuid4(), b"a") is None


@pytest.mark.parametrize(
    "state",
    [b"", b"\x00", bytes(range(256)), b"\xff" * 3_700_000],
    ids=["empty", "nul", "all", "large"],
)
def test_states_come_back_byte_for_byte(store: Store, state: bytes) -> None:
    session = uuid4()
    store.recorder.insert_events([row(session, 1, state, request_key=state[:99] or None)])
    (found,) = store.recorder.select_events(session)
    assert found.state == state


def test_a_tenant_comes_back_in_the_feed(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events([SessionStoredEvent(session, 1, "topic", b"", tenant="acme")])
    store.recorder.insert_events([StoredEvent(session, 2, "topic", b"")])
    found = store.recorder.select_notifications(None, 10)
    assert [each.tenant for each in found] == ["acme", "default"]


def test_chunks_are_one_transaction(store: Store) -> None:
    session = uuid4()

    def failing() -> Iterator[Sequence[StoredEvent]]:
        yield rows(session, 1_500)
        yield rows(session, 10, 1_501)
        raise RuntimeError("the client went away")

    with pytest.raises(RuntimeError):
        store.recorder.insert_chunks(failing())
    assert store.recorder.last_version(session) is None
    last = store.recorder.insert_chunks([rows(session, 1_500), rows(session, 10, 1_501)])
    assert last == store.recorder.max_notification_id()
    assert store.recorder.insert_chunks([]) == store.recorder.insert_chunks([[]]) == 0
    assert store.recorder.last_version(session) == 1_510


def test_a_collision_in_a_late_chunk_undoes_the_earlier_ones(store: Store) -> None:
    session = uuid4()
    with pytest.raises(DuplicateRowError) as caught:
        store.recorder.insert_chunks([rows(session, 5), rows(session, 5, 5)])
    assert caught.value.constraint == "version"
    assert store.recorder.last_version(session) is None


def test_no_transaction_takes_more_rows_than_the_feed_can_number(store: Store) -> None:
    many = _Repeated(row(uuid4(), 1), TRANSACTION_ROWS + 1)
    with pytest.raises(ValueError, match="1000000 rows"):
        store.recorder.insert_chunks([many])


class _Repeated(Sequence[StoredEvent]):
    """A row, so many times, without the memory."""

    def __init__(self, each: StoredEvent, count: int) -> None:
        self._each = each
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: object) -> StoredEvent:  # type: ignore[override]
        return self._each


def test_versions_are_read_whatever_their_number_and_order(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events(rows(session, 2_000))
    wanted = [5_000, *range(1_999, 0, -2)]
    found = store.recorder.select_versions(session, wanted)
    assert [each.originator_version for each in found] == [*range(1, 2_000, 2)]
    assert found[7].state == b"state 15"
    assert store.recorder.select_versions(session, []) == []


@pytest.mark.parametrize(
    ("max_bytes", "expected"), [(0, [1]), (9, [1]), (20, [1, 2]), (29, [1, 2]), (1_000, [1, 2, 3])]
)
def test_a_page_ends_where_its_bytes_would_exceed_the_limit(
    store: Store, max_bytes: int, expected: list[int]
) -> None:
    session = uuid4()
    store.recorder.insert_events([row(session, version, b"x" * 10) for version in (1, 2, 3, 4)])
    page = store.recorder.select_events(session, limit=3, max_bytes=max_bytes)
    assert [each.originator_version for each in page] == expected
    feed = store.recorder.select_notifications(None, 3, max_bytes=max_bytes)
    assert [each.originator_version for each in feed] == expected
    newest = store.recorder.select_events(session, desc=True, limit=3, max_bytes=max_bytes)
    assert [each.originator_version for each in newest] == [5 - version for version in expected]


def test_a_page_by_bytes_of_nothing_is_empty(store: Store) -> None:
    assert store.recorder.select_events(uuid4(), max_bytes=1) == []
    assert store.recorder.select_notifications(None, 10, max_bytes=1) == []


def test_a_closed_store_is_unavailable(store: Store) -> None:
    store.close()
    for use in (store.recorder.last_version, store.index.find_session):
        with pytest.raises(UnavailableError):
            use(uuid4())
    with pytest.raises(UnavailableError):
        store.recorder.insert_events([row(uuid4(), 1)])


def test_states_are_replaced_together(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events(rows(session, 1_200))
    store.recorder.replace_states(session, [(v, b"gone") for v in range(1, 1_200)])
    states = [each.state for each in store.recorder.select_events(session)]
    assert states == [b"gone"] * 1_199 + [b"state 1200"]


def test_a_missing_row_keeps_all_states_as_they_were(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events(rows(session, 2))
    with pytest.raises(IntegrityError):
        store.recorder.replace_states(session, [(1, b"gone"), (3, b"gone")])
    assert [each.state for each in store.recorder.select_events(session)] == [
        b"state 1",
        b"state 2",
    ]


def test_replacing_states_leaves_the_feed_as_it_was(store: Store) -> None:
    session = uuid4()
    store.recorder.insert_events(rows(session, 2))
    before = store.recorder.select_changes(0, 10)
    store.recorder.replace_states(session, [(1, b"gone")])
    assert store.recorder.select_changes(0, 10) == before


def test_of_writers_that_race_for_a_version_one_wins(store: Store) -> None:
    session = uuid4()

    def write(number: int) -> bool:
        try:
            store.recorder.insert_events([row(session, 1, str(number).encode())])
        except DuplicateRowError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(write, range(16)))
    (stored,) = store.recorder.select_events(session)
    assert [number for number, each in enumerate(won) if each] == [int(stored.state)]


def test_writers_of_the_same_sessions_in_other_orders_do_not_deadlock(store: Store) -> None:
    sessions = [uuid4() for _ in range(40)]

    def write(seed: int) -> int:
        mixed = [row(session, version) for session in sessions for version in (1, 2)]
        Random(seed).shuffle(mixed)
        try:
            return len(store.recorder.insert_events(mixed))
        except DuplicateRowError:
            return 0

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(write, range(24))) == 80


def test_a_hint_wakes_who_waits(store: Store) -> None:
    while store.recorder.wait_for_hint(0):
        pass
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(store.recorder.wait_for_hint, 30)
        store.recorder.notify()
        assert waiting.result()


def test_without_a_hint_waiting_ends(store: Store) -> None:
    while store.recorder.wait_for_hint(0.2):
        pass
    assert not store.recorder.wait_for_hint(0.01)


def test_checkpoints_are_found_by_the_version_they_cover(store: Store) -> None:
    session = uuid4()
    store.checkpoints.insert_events([row(session, 10, b"ten"), row(session, 20, b"twenty")])
    assert store.checkpoints.latest(session, 9) is None
    for version, expected in ((10, b"ten"), (19, b"ten"), (20, b"twenty"), (99, b"twenty")):
        found = store.checkpoints.latest(session, version)
        assert found is not None
        assert found.state == expected


def test_a_checkpoint_of_a_stored_version_is_ignored(store: Store) -> None:
    session = uuid4()
    store.checkpoints.insert_events([row(session, 10, b"first")])
    store.checkpoints.insert_events([row(session, 10, b"second"), row(session, 11, b"next")])
    assert [each.state for each in store.checkpoints.select_events(session)] == [b"first", b"next"]
