"""Attachments in a bucket, held to the promises of those in a directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from foldlog.persistence.errors import ObjectDamagedError, UnavailableError
from foldlog.persistence.object_bucket import BucketFiles
from foldlog.persistence.object_table import Surveyed
from foldlog.persistence.objects import ObjectStore
from foldlog.persistence.store import Store, open_store

from tests.kept import Bucket, bucket_server

MIB = 1024 * 1024
LARGE = bytes(range(256)) * 4 * 1024 * 20  # 20 MiB: three parts
DIGEST = sha256(LARGE).digest()
ALWAYS_NS = 2**62


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bucket_server(tmp_path_factory.mktemp("buckets")) as address:
        yield address


@pytest.fixture
def bucket(address: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    bucket = Bucket(address)
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    return bucket


@pytest.fixture
def store(bucket: Bucket) -> Iterator[Store]:
    store = open_store("sqlite:///:memory:", object_directory=bucket.url, inline_bytes=1_000)
    yield store
    store.close()


@pytest.fixture
def objects(store: Store) -> ObjectStore:
    return store.objects


def put(objects: ObjectStore, data: bytes = LARGE) -> tuple[bytes, bool]:
    upload = objects.upload("t")
    try:
        for start in range(0, len(data), MIB):
            upload.write(data[start : start + MIB])
        return upload.finish()
    finally:
        upload.close()


def read(objects: ObjectStore, offset: int = 0, length: int = len(LARGE)) -> bytes:
    opened = objects.open("t", DIGEST)
    assert opened is not None
    with opened:
        return b"".join(opened.pieces(offset, length))


def surveyed(objects: ObjectStore) -> Surveyed:
    (one,) = objects.table.survey("t", DIGEST[:-1], ALWAYS_NS, 1)
    return one


def test_one_is_stored_once_and_read_whole_or_in_part(objects: ObjectStore, bucket: Bucket) -> None:
    assert put(objects) == (DIGEST, False)
    assert put(objects) == (DIGEST, True)
    (name,) = bucket.names()
    assert bucket.read(name) == LARGE
    assert read(objects) == LARGE
    assert read(objects, 8 * MIB - 1, 2) == LARGE[8 * MIB - 1 : 8 * MIB + 1]
    assert bucket.under_way() == 0


@pytest.mark.parametrize("damage", ["lost", "shorter", "changed"])
def test_damage_is_found_and_healed(objects: ObjectStore, bucket: Bucket, damage: str) -> None:
    put(objects)
    (name,) = bucket.names()
    if damage == "lost":
        bucket.remove(name)
    else:
        bucket.write(name, LARGE[:-1] if damage == "shorter" else LARGE[:-1] + b"x")
    with pytest.raises(ObjectDamagedError):
        read(objects)
    assert put(objects) == (DIGEST, False)
    assert read(objects) == LARGE
    assert len(bucket.names()) == 1


def test_an_upload_that_is_not_finished_leaves_nothing(
    objects: ObjectStore, bucket: Bucket
) -> None:
    upload = objects.upload("t")
    upload.write(LARGE)
    assert bucket.under_way() == 1
    upload.close()
    assert (bucket.names(), bucket.under_way()) == ([], 0)


def test_what_is_removed_while_it_is_read_may_be_asked_for_again(objects: ObjectStore) -> None:
    put(objects)
    opened = objects.open("t", DIGEST)
    assert opened is not None
    one = surveyed(objects)
    assert objects.table.delete("t", one, ALWAYS_NS)
    objects.remove(one.file)
    with opened, pytest.raises(UnavailableError):
        list(opened.pieces(0, len(LARGE)))
    assert objects.open("t", DIGEST) is None


def test_what_a_crash_leaves_is_removed_once_it_is_old(
    objects: ObjectStore, bucket: Bucket
) -> None:
    put(objects)
    (name,) = bucket.names()
    folder, _, _ = name.rpartition("/")
    unnamed = f"{folder}/{DIGEST.hex()}-0000"
    abandoned = "attachments/incoming/0"
    for each in (unnamed, abandoned):
        bucket.write(each, b"x")
    objects.remove_unnamed("t", time.time() - 3_600)
    assert bucket.names() == sorted([name, unnamed, abandoned])
    objects.remove_unnamed("t", time.time() + 3_600)
    assert bucket.names() == sorted([name, abandoned])
    files = BucketFiles(bucket.url)
    files.remove_abandoned(-3_600)
    files.close()
    assert bucket.names() == [name]
    assert read(objects) == LARGE


def test_a_bucket_that_is_not_there_is_no_damage(objects: ObjectStore, bucket: Bucket) -> None:
    elsewhere = BucketFiles("s3://there-is-no-such-bucket/attachments")
    with pytest.raises(UnavailableError):
        elsewhere.open("a/b")
    with pytest.raises(UnavailableError):
        elsewhere.begin().publish("t", DIGEST)
    elsewhere.remove("a/b")
    elsewhere.close()


def test_a_server_of_buckets_that_is_away_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with bucket_server(tmp_path) as address:
        bucket = Bucket(address)
        for name, value in bucket.environment.items():
            monkeypatch.setenv(name, value)
        store = open_store("sqlite:///:memory:", object_directory=bucket.url, inline_bytes=1_000)
        put(store.objects)
    with pytest.raises(UnavailableError) as caught:
        read(store.objects)
    assert address not in caught.value.told
    store.close()


@pytest.mark.parametrize("module", ["fsspec", "fsspec.core", "s3fs"])
def test_an_extra_that_is_not_installed_is_asked_for(module: str) -> None:
    script = f"""
import sys
sys.modules[{module!r}] = None
from foldlog.persistence.errors import DriverMissingError
from foldlog.persistence.store import open_store
try:
    open_store("sqlite:///:memory:", object_directory="s3://bucket/prefix")
except DriverMissingError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "foldlog[s3]" in told.stdout


def test_a_process_that_used_a_bucket_ends_and_says_nothing(bucket: Bucket) -> None:
    script = f"""
from foldlog.persistence.store import open_store
store = open_store("sqlite:///:memory:", object_directory={bucket.url!r}, inline_bytes=0)
upload = store.objects.upload("t")
upload.write(b"x" * 100)
print(upload.finish()[0].hex())
upload.close()
store.close()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", script]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.strip() == sha256(b"x" * 100).hexdigest()
