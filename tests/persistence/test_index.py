"""The session index, on every kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from uuid import UUID, uuid4

import pytest
from eventsourcing.persistence import IntegrityError, Tracking
from foldlog.persistence.index import (
    INDEX_NAME,
    Ancestor,
    IndexChange,
    IndexQuery,
    IndexRow,
    Instant,
    PageTokenError,
    SessionCreated,
)
from foldlog.persistence.quotas import Usage
from foldlog.persistence.store import Store

KINDS = ("note", "a\x00b", "")
LABELS: tuple[dict[str, str], ...] = (
    {},
    {"team": "red"},
    {"team": "blue", "env": "prod"},
    {"team": "red", "env": "prod"},
)


def at(notification_id: int) -> Tracking:
    """Return a position of the feed."""
    return Tracking(INDEX_NAME, notification_id)


def created(session_id: str, second: int = 0, **parts: object) -> IndexChange:
    """Return the change that makes a session known."""
    made = SessionCreated(session_id, Instant(second, 5))
    return IndexChange(uuid4(), created=replace(made, **parts))  # type: ignore[arg-type]


def listed(store: Store, query: IndexQuery) -> Iterator[IndexRow]:
    """Yield the rows of all the pages."""
    while True:
        page = store.index.list_sessions(query)
        yield from page.rows
        if not page.next_page_token:
            return
        query = replace(query, page_token=page.next_page_token)


def ids(store: Store, **filters: object) -> list[str]:
    """Return the ids that a listing gives."""
    return [each.session_id for each in listed(store, IndexQuery(**filters))]  # type: ignore[arg-type]


def test_a_session_is_listed_as_it_was_told(store: Store) -> None:
    change = created(
        "s é",
        parent_session_id="p",
        parent_at_seq=-1,
        labels={"a": "x\x00", "é": ""},
        metadata_json='{"a": "\\u0000", "n": 1.0}',
    )
    store.index.apply([change._replace(next_seq=3, update_time=Instant(9, 999_999_999))], at(1))
    (found,) = listed(store, IndexQuery())
    assert found == IndexRow(
        aggregate_id=change.aggregate_id,
        session_id="s é",
        next_seq=3,
        labels={"a": "x\x00", "é": ""},
        metadata_json='{"a": "\\u0000", "n": 1.0}',
        create_time=Instant(0, 5),
        update_time=Instant(9, 999_999_999),
        parent_session_id="p",
        parent_at_seq=-1,
    )
    assert store.index.find_session(change.aggregate_id) == found


def test_the_newest_session_comes_first_and_ids_part_equal_times(store: Store) -> None:
    changes = [created(str(n), n // 3) for n in range(20)]
    store.index.apply(changes, at(1))
    expected = sorted(changes, key=_newest_first, reverse=True)
    assert ids(store, page_size=3) == [each.created.session_id for each in expected if each.created]


def _newest_first(change: IndexChange) -> tuple[Instant, UUID]:
    assert change.created is not None
    return change.created.create_time, change.aggregate_id


def test_times_of_years_1_and_9999_are_kept(store: Store) -> None:
    first, last = -62_135_596_800, 253_402_300_799
    store.index.apply([created("old", first), created("new", last)], at(1))
    assert ids(store) == ["new", "old"]
    assert ids(store, created_before=Instant(first, 5)) == []
    assert ids(store, created_from=Instant(last, 5)) == ["new"]


def test_changes_replace_what_they_name_and_leave_the_rest(store: Store) -> None:
    change = created("s", labels={"a": "1"}, metadata_json="1")
    store.index.apply([change._replace(next_seq=1, update_time=Instant(1))], at(1))
    later = IndexChange(change.aggregate_id)
    store.index.apply([later._replace(labels={"b": "2"})], at(2))
    store.index.apply([later._replace(metadata_json="", next_seq=7)], at(3))
    (found,) = listed(store, IndexQuery())
    assert (found.labels, found.metadata_json, found.next_seq) == ({"b": "2"}, "", 7)
    assert found.update_time == Instant(1)
    assert ids(store, labels={"a": "1"}) == []
    assert ids(store, labels={"b": "2"}) == ["s"]


def test_new_labels_leave_parent_and_custom_keys_findable(store: Store) -> None:
    change = created("s", parent_session_id="p")._replace(custom=(("k", "x"),))
    store.index.apply([change], at(1))
    store.index.apply([IndexChange(change.aggregate_id, labels={})], at(2))
    assert ids(store, parent_session_id="p", custom_kind="k", custom_key="x") == ["s"]


def test_a_deleted_session_is_nowhere(store: Store) -> None:
    change = created("s", labels={"a": "1"}, segments=(Ancestor(UUID(int=1), 5),))
    store.index.apply([change], at(1))
    store.index.apply([IndexChange(change.aggregate_id, deleted=True)], at(2))
    store.index.apply([IndexChange(change.aggregate_id, custom=(("k", "x"),))], at(3))
    assert ids(store) == ids(store, labels={"a": "1"}) == ids(store, custom_key="x") == []
    assert store.index.find_session(change.aggregate_id) is None
    assert store.index.forks_reading(UUID(int=1)) == []


def test_a_session_made_and_deleted_in_one_stretch_is_nowhere(store: Store) -> None:
    store.index.apply([created("s", labels={"a": "1"})._replace(deleted=True)], at(1))
    assert ids(store) == ids(store, labels={"a": "1"}) == []


def test_a_change_of_a_session_that_is_not_known_is_ignored(store: Store) -> None:
    store.index.apply([IndexChange(uuid4(), labels={"a": "1"}, custom=(("k", "x"),))], at(1))
    assert ids(store) == ids(store, labels={"a": "1"}) == []
    assert store.index.position() == 1


def test_forks_tell_up_to_where_they_read(store: Store) -> None:
    parent, other = uuid4(), uuid4()
    child = created("c", segments=(Ancestor(other, 3), Ancestor(parent, 8)))
    store.index.apply([child, created("d")], at(1))
    assert store.index.forks_reading(parent) == [(child.aggregate_id, "c", 8)]
    assert store.index.forks_reading(other) == [(child.aggregate_id, "c", 3)]
    assert store.index.forks_reading(child.aggregate_id) == []


def test_sessions_of_another_tenant_are_not_listed(store: Store) -> None:
    store.index.apply([created("mine"), created("theirs")._replace(tenant="acme")], at(1))
    assert ids(store) == ["mine"]
    assert ids(store, tenant="acme") == ["theirs"]


@pytest.mark.parametrize("position", [4, 5], ids=["behind", "the same"])
def test_a_position_that_does_not_grow_changes_nothing(store: Store, position: int) -> None:
    store.index.apply([created("first")], at(5))
    with pytest.raises(IntegrityError):
        store.index.apply([created("second")], at(position))
    assert ids(store) == ["first"]
    assert store.index.position() == 5


def test_what_another_process_has_applied_in_part_is_not_applied_again(store: Store) -> None:
    """Two read from one place on; the second has read further once the first has applied."""
    change = created("s")._replace(size_bytes=10)
    store.index.apply([change], at(5), 0)
    for after_id in (0, 3):
        with pytest.raises(IntegrityError):
            store.index.apply([change, created("t")], at(8), after_id)
    store.index.apply([created("t")], at(8), 5)
    assert sorted(ids(store)) == ["s", "t"]
    assert store.quotas.usage("default") == Usage(2, 10)


def test_an_index_that_is_rebuilt_holds_what_it_is_given_and_nothing_else(store: Store) -> None:
    store.index.apply([created("old", labels={"a": "1"})], at(9))
    store.index.rebuild(lambda: [[created("new", labels={"a": "2"})], [created("more")]], 7)
    assert sorted(ids(store)) == ["more", "new"]
    assert (ids(store, labels={"a": "1"}), ids(store, labels={"a": "2"})) == ([], ["new"])
    assert store.index.position() == 7


def test_a_rebuilding_that_fails_leaves_the_index_as_it_was(store: Store) -> None:
    store.index.apply([created("old")], at(9))

    def stretches() -> Iterator[list[IndexChange]]:
        yield [created("new")]
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        store.index.rebuild(stretches, 10)
    assert (ids(store), store.index.position()) == (["old"], 9)


def test_of_processes_that_apply_the_same_stretch_one_does(store: Store) -> None:
    change = created("s")

    def apply(_: int) -> bool:
        try:
            store.index.apply([change._replace(next_seq=1)], at(7))
        except IntegrityError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(apply, range(8))) == 1


@pytest.mark.parametrize("token", ["x", "AAAA", "é", "A" * 48], ids=["x", "short", "text", "zeros"])
def test_a_malformed_token_is_refused(store: Store, token: str) -> None:
    with pytest.raises(PageTokenError):
        store.index.list_sessions(IndexQuery(page_token=token))


def test_a_token_of_other_filters_is_refused(store: Store) -> None:
    store.index.apply([created(str(n), labels={"a": "1"}) for n in range(3)], at(1))
    page = store.index.list_sessions(IndexQuery(page_size=1))
    with pytest.raises(PageTokenError):
        store.index.list_sessions(IndexQuery(page_token=page.next_page_token, labels={"a": "1"}))


def test_pages_go_on_where_they_were_while_sessions_come_and_go(store: Store) -> None:
    changes = [created(str(n), n) for n in range(6)]
    store.index.apply(changes, at(1))
    first = store.index.list_sessions(IndexQuery(page_size=3))
    store.index.apply(
        [created("newer", 10), IndexChange(changes[3].aggregate_id, deleted=True)], at(2)
    )
    rest = store.index.list_sessions(IndexQuery(page_size=3, page_token=first.next_page_token))
    assert [each.session_id for each in (*first.rows, *rest.rows)] == ["5", "4", "3", "2", "1", "0"]
    assert rest.next_page_token == ""


def test_an_exact_page_is_the_last(store: Store) -> None:
    store.index.apply([created("a"), created("b")], at(1))
    assert store.index.list_sessions(IndexQuery(page_size=2)).next_page_token == ""


def test_every_combination_of_filters_lists_what_a_plain_scan_finds(store: Store) -> None:
    random = Random(7)
    changes = [_random_session(random, n) for n in range(60)]
    store.index.apply(changes, at(1))
    for _ in range(120):
        query = _random_query(random)
        found = [each.aggregate_id for each in listed(store, query)]
        matching = [each for each in changes if _matches(each, query)]
        expected = sorted(matching, key=_newest_first, reverse=True)
        assert found == [each.aggregate_id for each in expected], query


def _random_session(random: Random, number: int) -> IndexChange:
    made = created(
        f"s{number}",
        random.randrange(10),
        labels=random.choice(LABELS),
        parent_session_id=random.choice((None, "p", "q")),
    )
    return made._replace(
        custom=tuple((random.choice(KINDS), random.choice(KINDS)) for _ in range(3)),
        update_time=Instant(random.randrange(10), 5),
    )


def _random_query(random: Random) -> IndexQuery:
    def perhaps(*values: Instant | None) -> Instant | None:
        return random.choice((None, *values))

    return IndexQuery(
        page_size=random.choice((1, 7, 50)),
        labels=random.choice((*LABELS, {}, {})),
        parent_session_id=random.choice(("", "", "p")),
        custom_key=random.choice(("", *KINDS)),
        custom_kind=random.choice(("", *KINDS)),
        created_from=perhaps(Instant(3, 5), Instant(3, 6)),
        created_before=perhaps(Instant(8, 5), Instant(8, 6)),
        updated_from=perhaps(Instant(5, 5)),
    )


def _matches(change: IndexChange, query: IndexQuery) -> bool:
    made = change.created
    assert made is not None
    assert change.update_time is not None
    start, stop, updated = query.created_from, query.created_before, query.updated_from
    return (
        query.labels.items() <= made.labels.items()
        and query.parent_session_id in ("", made.parent_session_id)
        and (start is None or made.create_time >= start)
        and (stop is None or made.create_time < stop)
        and (updated is None or change.update_time >= updated)
        and _has_custom(change, query)
    )


def _has_custom(change: IndexChange, query: IndexQuery) -> bool:
    if not query.custom_key and not query.custom_kind:
        return True
    return any(
        query.custom_kind in ("", kind) and query.custom_key in ("", key)
        for kind, key in change.custom
    )
