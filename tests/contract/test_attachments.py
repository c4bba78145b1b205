"""Attachments: stored once under their digest, verified when written and when read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from foldlog.v1 import service_pb2

from tests.conftest import BACKENDS, DURABLE_BACKENDS, ENCRYPTED, ENCRYPTED_BACKENDS
from tests.contract.attachments import (
    collect,
    digest_of,
    elements,
    got,
    looking,
    naming,
    pieces,
    put,
    sample,
    stored,
)
from tests.contract.calls import DEADLINE_S, Calls, fresh_id
from tests.contract.refusal import refused
from tests.contract.said import user
from tests.kept import Kept
from tests.served import Served

KIB, MIB = 1024, 1024 * 1024
SIZES = [0, 1, 256 * KIB, 256 * KIB + 1, MIB, 2 * MIB, 3 * MIB + 17]


@pytest.fixture(params=[*BACKENDS, *ENCRYPTED_BACKENDS, "bucket"])
def backend(request: pytest.FixtureRequest) -> str:
    """The id of a store, or of one whose large attachments go into a bucket."""
    name: str = request.param
    return name


@pytest.mark.parametrize("size", SIZES)
def test_bytes_come_back_whole_and_in_ranges(stub: Any, size: int) -> None:
    data = sample(size, [fresh_id()])
    answer = put(stub, data, sha256=digest_of(data), size_bytes=size, media_type="a/b")
    assert (answer.sha256, answer.size_bytes) == (digest_of(data), size)
    assert not answer.existed or not size  # no bytes at all are the same for every test
    whole = pieces(stub, answer.sha256)
    assert b"".join(each.data for each in whole) == data
    assert whole[0].size_bytes == size
    for offset, length in [(0, 1), (size // 2, MIB), (size, 5), (max(0, size - 3), 0), (0, size)]:
        wanted = data[offset : offset + length] if length else data[offset:]
        assert got(stub, answer.sha256, offset, length) == wanted, (offset, length)


def test_the_pieces_of_an_upload_do_not_matter(stub: Any) -> None:
    data = sample(300 * KIB, [fresh_id()])
    assert not put(stub, data, piece_bytes=1_000).existed
    assert put(stub, data, piece_bytes=MIB).existed
    assert got(stub, digest_of(data)) == data


def test_each_piece_that_is_sent_fits_a_default_client(stub: Any) -> None:
    data = sample(5 * MIB, [fresh_id()])
    put(stub, data)
    assert max(len(each.data) for each in pieces(stub, digest_of(data))) <= MIB


def test_which_are_stored_is_told_in_the_order_asked(stub: Any) -> None:
    mine = [sample(size, [fresh_id()]) for size in (10, 300 * KIB)]
    for each in mine:
        put(stub, each)
    absent = digest_of(fresh_id().encode())
    asked = [digest_of(mine[1]), absent, digest_of(mine[0])]
    assert list(stored(stub, *asked).items()) == [(asked[0], 300 * KIB), (asked[2], 10)]
    assert stored(stub) == {}


def test_what_is_not_stored_is_not_found(stub: Any) -> None:
    with refused("ATTACHMENT_UNKNOWN", sha256="07" * 32):
        got(stub, b"\7" * 32)


@pytest.mark.parametrize("digest", [b"", b"../../etc/passwd", b"x" * 33])
def test_what_is_no_digest_is_refused(stub: Any, digest: bytes) -> None:
    with refused("INVALID_FIELD"):
        got(stub, digest)
    with refused("INVALID_FIELD"):
        stored(stub, digest)


def test_a_range_past_the_end_is_refused(stub: Any) -> None:
    put(stub, b"four")
    assert got(stub, digest_of(b"four"), offset=4) == b""
    assert got(stub, digest_of(b"four"), offset=2, length=2**63) == b"ur"
    with refused("INVALID_FIELD") as told:
        got(stub, digest_of(b"four"), offset=5)
    assert (told.fields or {}).keys() == {"offset"}


@pytest.mark.parametrize("size", [10, 300 * KIB])
@pytest.mark.parametrize(
    ("header", "field"),
    [
        ({"sha256": b"\7" * 32}, "header.sha256"),
        ({"sha256": b"short"}, "header.sha256"),
        ({"size_bytes": 9}, "header.size_bytes"),
        ({"size_bytes": 300 * KIB + 1}, "header.size_bytes"),
        ({"media_type": "png"}, "header.media_type"),
    ],
    ids=["another digest", "no digest", "too small", "too large", "no media type"],
)
def test_what_does_not_fit_its_header_is_not_stored(
    stub: Any, size: int, header: dict[str, Any], field: str
) -> None:
    data = sample(size, [fresh_id()])
    with refused("INVALID_FIELD") as told:
        put(stub, data, **header)
    assert (told.fields or {}).keys() == {field}
    assert stored(stub, digest_of(data)) == {}


def test_an_upload_begins_with_its_header_and_has_no_second(stub: Any) -> None:
    for made in (
        [service_pb2.PutAttachmentRequest(data=b"x")],
        [*elements(b"x"), *elements(b"y")],
        [service_pb2.PutAttachmentRequest()],
        [],
    ):
        with refused("INVALID_FIELD"):
            stub.PutAttachment(iter(made))


def test_a_piece_of_more_than_a_mebibyte_is_refused(stub: Any) -> None:
    with refused("TOO_LARGE", limit=MIB):
        put(stub, sample(MIB + 1), piece_bytes=2 * MIB)


def test_the_largest_attachment_is_a_setting(serve: Callable[..., Served]) -> None:
    served = serve(FOLDLOG_LIMIT_ATTACHMENT_BYTES="1000")
    assert put(served.stub, sample(1_000)).size_bytes == 1_000
    with refused("TOO_LARGE", limit=1_000):
        put(served.stub, sample(1_001))
    with refused("TOO_LARGE", size=5_000, limit=1_000):
        put(served.stub, b"", size_bytes=5_000)


def test_the_same_bytes_put_at_once_are_one_object(stub: Any) -> None:
    data = sample(2 * MIB, [fresh_id()])
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(put(stub, data))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.existed for each in answers].count(False) == 1
    assert got(stub, digest_of(data)) == data


@pytest.fixture
def beside(serve: Callable[..., Served], backend: str, kept: Kept) -> Served:
    """A server that keeps every byte in that place."""
    names = {"FOLDLOG_OBJECT_DIRECTORY": kept.url, "FOLDLOG_OBJECT_INLINE_BYTES": "0"}
    return serve(backend, **names, **kept.environment)


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline


def flip(kept: Kept, at: int) -> None:
    (name,) = kept.names()
    data = bytearray(kept.read(name))
    data[at] ^= 1
    kept.write(name, bytes(data))


def test_a_file_holds_each_object_once(beside: Served, backend: str, kept: Kept) -> None:
    data = sample(3 * MIB)
    assert not put(beside.stub, data, media_type="image/png").existed
    assert put(beside.stub, data, media_type="image/jpeg").existed
    (name,) = kept.names()
    assert (kept.read(name) == data) is not backend.endswith(ENCRYPTED)


def test_damage_is_told_heals_and_blocks_nothing_else(beside: Served, kept: Kept) -> None:
    stub, data = beside.stub, sample(3 * MIB)
    digest = put(stub, data).sha256
    log = Calls.create(stub)
    log.append(looking(digest), user("text"))
    flip(kept, 2 * MIB + KIB)
    with refused("ATTACHMENT_CORRUPT", sha256=digest.hex()):
        got(stub, digest)
    with refused("ATTACHMENT_CORRUPT", sha256=digest.hex()):
        got(stub, digest, 2 * MIB, 10)
    assert got(stub, digest, 0, MIB) == data[:MIB]
    assert log.surface() == [0, 1]
    assert log.messages()[0] == naming(digest)
    assert not put(stub, data).existed
    assert got(stub, digest) == data
    assert len(kept.names()) == 1
    assert put(stub, data).existed


def test_no_byte_of_a_damaged_piece_is_sent(beside: Served, kept: Kept) -> None:
    data = sample(3 * MIB)
    digest = put(beside.stub, data).sha256
    flip(kept, MIB + KIB)
    request = service_pb2.GetAttachmentRequest(sha256=digest)
    came = iter(beside.stub.GetAttachment(request, timeout=DEADLINE_S))
    assert next(came).data == data[:MIB]
    with refused("ATTACHMENT_CORRUPT", sha256=digest.hex()):
        next(came)


@pytest.mark.parametrize("damage", ["lost", "shorter", "longer"])
def test_a_file_that_is_lost_or_of_another_size_is_damage(
    beside: Served, kept: Kept, damage: str
) -> None:
    data = sample(2 * MIB)
    digest = put(beside.stub, data).sha256
    (name,) = kept.names()
    if damage == "lost":
        kept.remove(name)
    else:
        kept.write(name, data[:-1] if damage == "shorter" else data + b"x")
    for offset in (0, MIB):
        with refused("ATTACHMENT_CORRUPT", sha256=digest.hex()):
            got(beside.stub, digest, offset)
    assert stored(beside.stub, digest) == {digest: 2 * MIB}
    assert not put(beside.stub, data).existed
    assert got(beside.stub, digest) == data


def test_an_upload_that_is_broken_off_leaves_nothing(beside: Served, kept: Kept) -> None:
    data, arrived = sample(20 * MIB), threading.Event()

    def broken() -> Iterator[Any]:
        yield from elements(data[: 18 * MIB])
        arrived.wait()

    call = beside.stub.PutAttachment.future(broken())
    eventually(lambda: bool(kept.under_way()))
    call.cancel()
    arrived.set()
    eventually(lambda: not kept.under_way())
    assert kept.names() == []
    assert stored(beside.stub, digest_of(data)) == {}
    put(beside.stub, data)
    assert got(beside.stub, digest_of(data)) == data


@pytest.mark.parametrize("backend", [*DURABLE_BACKENDS, "bucket"], indirect=True)
def test_attachments_survive_a_crash(serve: Callable[..., Served], backend: str) -> None:
    served = serve(backend)
    small, large = sample(100), sample(3 * MIB)
    for data in (small, large):
        put(served.stub, data)
    served.restart("kill9")
    for data in (small, large):
        assert got(served.stub, digest_of(data)) == data


def test_without_a_directory_large_ones_are_refused_on_postgres(
    serve: Callable[..., Served],
) -> None:
    served = serve("postgres", FOLDLOG_OBJECT_DIRECTORY="", FOLDLOG_OBJECT_INLINE_BYTES="1000")
    with refused("TOO_LARGE", limit=1_000) as told:
        put(served.stub, sample(1_001))
    assert "FOLDLOG_OBJECT_DIRECTORY" in told.message
    assert got(served.stub, put(served.stub, sample(1_000)).sha256) == sample(1_000)


@pytest.mark.parametrize("backend", ["directory", "bucket"], indirect=True)
def test_two_processes_share_the_files(
    serve: Callable[..., Served], kept: Kept, tmp_path: Path
) -> None:
    names = {"FOLDLOG_OBJECT_DIRECTORY": kept.url, "FOLDLOG_OBJECT_INLINE_BYTES": "0"}
    names |= kept.environment
    one = serve("postgres", **names)
    other = Served(one.database_url, tmp_path, names).start()
    try:
        data = sample(2 * MIB)
        assert not put(one.stub, data).existed
        assert put(other.stub, data).existed
        assert got(other.stub, digest_of(data)) == data
        log = Calls.create(one.stub)
        other_log = Calls(other.stub, log.session_id)
        other_log.append(looking(digest_of(data)))
        assert collect(other.stub, dry_run=True).examined_count == 1
    finally:
        other.close()
