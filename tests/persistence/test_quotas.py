"""Quotas and what is used, on every kind of store."""

from __future__ import annotations

from uuid import uuid4

from foldlog.persistence.index import IndexChange, Instant, SessionCreated
from foldlog.persistence.object_table import StoredObject
from foldlog.persistence.quotas import Quotas, Usage
from foldlog.persistence.store import Store

from tests.persistence.test_index import at


def created(tenant: str, size_bytes: int) -> IndexChange:
    made = SessionCreated(f"s-{uuid4()}", Instant(1))
    return IndexChange(uuid4(), tenant, created=made, size_bytes=size_bytes)


def test_what_a_tenant_does_not_say_is_as_the_defaults_are(store: Store) -> None:
    defaults = Quotas(1, 2, 3, 4)
    assert store.quotas.find("red").over(defaults) == defaults
    store.quotas.set("red", Quotas(sessions=0, bytes=7))
    store.quotas.set("red", Quotas(sessions=0, bytes=2**40))
    assert store.quotas.find("red").over(defaults) == Quotas(0, 2**40, 3, 4)


def test_use_is_counted_with_the_index_and_for_each_tenant(store: Store) -> None:
    red, blue, more = created("red", 10), created("blue", 7), created("red", 20)
    store.index.apply([red, blue, more], at(1))
    grown = IndexChange(red.aggregate_id, "red", next_seq=3, size_bytes=5)
    store.index.apply([grown, grown._replace(aggregate_id=more.aggregate_id, deleted=True)], at(2))
    assert store.quotas.usage("red") == Usage(sessions=1, bytes=40)
    assert store.quotas.usage("blue") == Usage(sessions=1, bytes=7)
    assert store.quotas.usage("green") == Usage()
    assert store.quotas.tenants() == ["blue", "red"]


def test_attachments_count_where_they_are(store: Store) -> None:
    stored = StoredObject(b"\x01" * 32, 1_000, 1, 1, None, b"", b"x")
    store.objects.table.insert("red", stored)
    assert store.quotas.usage("red") == Usage(bytes=1_000)
