"""Attachments in every store: rows, files, and what happens at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest
from eventsourcing.persistence import IntegrityError, Tracking
from foldlog.persistence.errors import NoDirectoryError, ObjectDamagedError, UnavailableError
from foldlog.persistence.object_table import (
    REFERENCES_NAME,
    Dropped,
    Reference,
    ReferenceChanges,
    StoredObject,
    Surveyed,
)
from foldlog.persistence.objects import ObjectStore
from foldlog.persistence.store import Store, open_store

from tests.persistence.stores import BACKENDS, fresh_url

MIB = 1024 * 1024
LARGE = b"large" * MIB
DIGEST = sha256(LARGE).digest()
NEVER_NS, ALWAYS_NS = 0, 2**62


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store whose attachments of more than 1,000 bytes go to a directory."""
    directory = str(tmp_path / "objects")
    with fresh_url(request.param, tmp_path) as url:
        store = open_store(url, object_directory=directory, inline_bytes=1_000)
        yield store
        store.close()


@pytest.fixture
def objects(store: Store) -> ObjectStore:
    """The attachments of the store."""
    return store.objects


def put(objects: ObjectStore, data: bytes, tenant: str = "t") -> tuple[bytes, bool]:
    upload = objects.upload(tenant)
    try:
        upload.write(data)
        return upload.finish()
    finally:
        upload.close()


def read(objects: ObjectStore, digest: bytes, tenant: str = "t") -> bytes | None:
    opened = objects.open(tenant, digest)
    if opened is None:
        return None
    with opened:
        return b"".join(opened.pieces(0, opened.stored.size_bytes))


def found(objects: ObjectStore, digest: bytes) -> StoredObject:
    stored = objects.table.find("t", digest)
    assert stored is not None
    return stored


def surveyed(objects: ObjectStore, digest: bytes, young_from_ns: int = ALWAYS_NS) -> Surveyed:
    (one,) = objects.table.survey("t", digest[:-1], young_from_ns, 1)
    return one


def files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in (tmp_path / "objects").rglob("*") if path.is_file())


def test_a_small_one_is_in_the_row_and_a_large_one_in_a_file(
    objects: ObjectStore, tmp_path: Path
) -> None:
    small, _ = put(objects, b"s" * 1_000)
    assert found(objects, small).data == b"s" * 1_000
    assert files(tmp_path) == []
    put(objects, LARGE)
    assert found(objects, DIGEST).data is None
    assert len(found(objects, DIGEST).chunks) == 5 * 32
    assert [path.read_bytes() for path in files(tmp_path)] == [LARGE]


def test_tenants_do_not_share(objects: ObjectStore) -> None:
    digest, _ = put(objects, b"secret", tenant="one")
    assert read(objects, digest, tenant="../other") is None
    assert put(objects, b"secret", tenant="../other") == (digest, False)
    assert put(objects, LARGE, tenant="../other") == (DIGEST, False)
    assert read(objects, DIGEST, tenant="one") is None


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["row", "file"])
def test_damage_is_found_and_healed(objects: ObjectStore, data: bytes) -> None:
    digest, _ = put(objects, data)
    stored = found(objects, digest)
    damaged = StoredObject(
        digest,
        stored.size_bytes,
        1,
        1,
        stored.file,
        bytes(len(stored.chunks)),
        data[::-1] if stored.data else None,
    )
    assert objects.table.replace("t", stored, damaged)
    with pytest.raises(ObjectDamagedError):
        read(objects, digest)
    assert put(objects, data) == (digest, False)
    assert read(objects, digest) == data


def test_of_two_uploads_at_once_one_stores(objects: ObjectStore, tmp_path: Path) -> None:
    one, other = objects.upload("t"), objects.upload("t")
    for upload in (one, other):
        upload.write(LARGE)
    assert len(files(tmp_path)) == 2
    assert one.finish() == (DIGEST, False)
    assert other.finish() == (DIGEST, True)
    one.close()
    other.close()
    assert len(files(tmp_path)) == 1
    assert read(objects, DIGEST) == LARGE


def test_an_upload_that_is_not_finished_leaves_nothing(
    objects: ObjectStore, tmp_path: Path
) -> None:
    upload = objects.upload("t")
    upload.write(LARGE)
    upload.close()
    assert files(tmp_path) == []
    assert objects.table.find("t", DIGEST) is None


def test_what_is_open_stays_readable_while_it_is_collected(objects: ObjectStore) -> None:
    put(objects, LARGE)
    opened = objects.open("t", DIGEST)
    assert opened is not None
    one = surveyed(objects, DIGEST)
    assert objects.table.delete("t", one, ALWAYS_NS)
    objects.remove(one.file)
    with opened:
        assert b"".join(opened.pieces(0, len(LARGE))) == LARGE
    assert objects.open("t", DIGEST) is None


def test_what_was_put_again_since_it_was_surveyed_is_not_collected(
    objects: ObjectStore,
) -> None:
    put(objects, LARGE)
    cutoff_ns = time.time_ns()
    one = surveyed(objects, DIGEST, cutoff_ns)
    assert not one.is_young
    assert put(objects, LARGE) == (DIGEST, True)
    assert not objects.table.delete("t", one, cutoff_ns)
    assert read(objects, DIGEST) == LARGE


def test_a_file_that_is_put_while_the_old_one_is_removed_stays(objects: ObjectStore) -> None:
    put(objects, LARGE)
    one = surveyed(objects, DIGEST)
    assert objects.table.delete("t", one, ALWAYS_NS)
    assert put(objects, LARGE) == (DIGEST, False)
    objects.remove(one.file)
    assert read(objects, DIGEST) == LARGE


def test_what_was_named_since_it_was_surveyed_is_not_collected(objects: ObjectStore) -> None:
    digest, _ = put(objects, b"named")
    one = surveyed(objects, digest)
    assert not one.is_named
    session = uuid4()
    added = [Reference("t", digest, session, 2, 0, False)]
    objects.table.apply_references(ReferenceChanges(added), Tracking(REFERENCES_NAME, 1))
    assert surveyed(objects, digest).is_named
    assert not objects.table.delete("t", one, ALWAYS_NS)
    dropped = [Dropped(session, 0, 3)]
    objects.table.apply_references(ReferenceChanges([], dropped), Tracking(REFERENCES_NAME, 2))
    assert not surveyed(objects, digest).is_named
    assert objects.table.delete("t", one, ALWAYS_NS)


def test_references_are_noted_exactly_once(objects: ObjectStore) -> None:
    digest = sha256(b"absent").digest()
    added = [Reference("t", digest, uuid4(), 2, 0, False)]
    objects.table.apply_references(ReferenceChanges(added), Tracking(REFERENCES_NAME, 7))
    assert objects.table.followed() == 7
    with pytest.raises(IntegrityError):
        objects.table.apply_references(ReferenceChanges(added), Tracking(REFERENCES_NAME, 7))


def test_a_young_one_is_not_looked_up(objects: ObjectStore) -> None:
    digest, _ = put(objects, b"young")
    assert surveyed(objects, digest, NEVER_NS) == Surveyed(digest, 5, None, True, False)


def test_a_directory_that_is_away_is_no_damage(objects: ObjectStore, tmp_path: Path) -> None:
    put(objects, LARGE)
    (tmp_path / "objects").rename(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError):
        read(objects, DIGEST)
    (tmp_path / "elsewhere").rename(tmp_path / "objects")
    assert read(objects, DIGEST) == LARGE


def test_without_a_directory_the_row_takes_what_the_service_needs(plain_url: str) -> None:
    store = open_store(plain_url, inline_bytes=1_000)
    try:
        with pytest.raises(NoDirectoryError):
            put(store.objects, LARGE)
        assert store.objects.put_bytes("t", LARGE) == DIGEST
        assert read(store.objects, DIGEST) == LARGE
    finally:
        store.close()


def test_the_directory_beside_a_file_is_made_when_it_is_needed(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    beside = tmp_path / "a.db.objects"
    try:
        put(store.objects, b"small")
        assert not beside.exists()
        put(store.objects, LARGE)
        assert beside.is_dir()
    finally:
        store.close()
    again = open_store(f"sqlite:///{tmp_path / 'a.db'}")
    assert read(again.objects, DIGEST) == LARGE
    again.close()
