"""The table of API keys, on every kind of store."""

from __future__ import annotations

from dataclasses import replace

from foldlog.persistence.keys import KeyRow
from foldlog.persistence.store import Store

KEY = KeyRow("0a", "red", "writer", b"\x01" * 32, 5, {"a\x00": "ü"}, "worker", 9)


def test_a_key_comes_back_as_it_was_written(store: Store) -> None:
    store.keys.insert(KEY)
    assert store.keys.find("0a") == KEY
    assert store.keys.find("0b") is None


def test_keys_are_listed_by_age_and_by_tenant(store: Store) -> None:
    newer = replace(KEY, key_id="00", created_ns=6, tenant="blue", expires_ns=None)
    for each in (newer, KEY):
        store.keys.insert(each)
    assert store.keys.all() == [KEY, newer]
    assert store.keys.all("blue") == [newer]


def test_a_key_is_revoked_once(store: Store) -> None:
    store.keys.insert(KEY)
    assert [store.keys.revoke(key_id, ns) for key_id, ns in (("0a", 7), ("0a", 8), ("0b", 9))] == [
        True,
        False,
        False,
    ]
    assert store.keys.find("0a") == replace(KEY, revoked_ns=7)


def test_the_digest_of_a_secret_does_not_show() -> None:
    assert "x01" not in repr(KEY)
