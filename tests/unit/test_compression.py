"""Packed bodies: told from plain ones, never longer, and never more memory than a body may take."""

from __future__ import annotations

import hashlib
import struct
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files

import pytest
from foldlog import compression
from foldlog.compression import (
    DICTIONARY_1,
    LEAST_BYTES,
    MOST_BYTES,
    ZSTD_1,
    PackedError,
    is_packed,
    pack,
    packer_of,
    plain,
    unpacked,
)
from foldlog.persistence.errors import DriverMissingError
from foldlog.v1.event_pb2 import EventBody
from foldlog.v1.message_pb2 import Message
from hypothesis import given
from hypothesis import strategies as st
from zstandard import FORMAT_ZSTD1_MAGICLESS, ZstdCompressionParameters, ZstdCompressor

SAID = "The file has three functions; the second one opens the database and reads every row. "


def body(text: str) -> bytes:
    """Return an encoded body that says a text."""
    return EventBody(message=Message(text=text)).SerializeToString()


PACKED = pack(body(SAID * 5))


def frame(data: bytes, **parameters: bool) -> bytes:
    """Return a packed body that this release would not write."""
    made = ZstdCompressionParameters.from_level(3, format=FORMAT_ZSTD1_MAGICLESS, **parameters)
    return ZSTD_1 + ZstdCompressor(compression_params=made).compress(data)


@given(st.text() | st.sampled_from("ab \0").map(lambda each: each * 3_000))
def test_a_body_comes_back_as_it_was_and_is_never_longer(text: str) -> None:
    given_body = body(text)
    packed = pack(given_body)
    assert unpacked(packed) == given_body
    assert len(packed) <= len(given_body)
    assert not is_packed(given_body)


def test_a_message_is_packed_by_a_third() -> None:
    assert is_packed(PACKED)
    assert len(PACKED) < len(body(SAID * 5)) * 2 / 3


@pytest.mark.parametrize("size", [0, 1, LEAST_BYTES - 1])
def test_what_is_short_stays_as_it_is(size: int) -> None:
    assert pack(b"\x0a" * size) == b"\x0a" * size


def test_a_dictionary_that_bodies_were_written_with_never_changes() -> None:
    data = files(compression).joinpath(DICTIONARY_1).read_bytes()
    assert hashlib.sha256(data).hexdigest() == (
        "d76556a9ba6bfd1f79ba9bbf70273f08b649d5cf0a2a9839623a5c36a071e59d"
    )


@pytest.mark.parametrize("cut", range(1, len(PACKED), 7))
def test_a_frame_that_is_cut_short_is_told(cut: int) -> None:
    with pytest.raises(PackedError, match="does not decompress"):
        unpacked(PACKED[:cut])


@given(st.binary(max_size=200))
def test_rubbish_is_told_or_comes_to_something_small(rubbish: bytes) -> None:
    with suppress(PackedError):
        assert len(unpacked(ZSTD_1 + rubbish)) <= MOST_BYTES


# A frame's first byte: eight bytes of size, and no window but that.
SINGLE_SEGMENT_OF_8 = b"\xe0"


@pytest.mark.parametrize("claimed", [MOST_BYTES + 1, 100 << 30, (1 << 64) - 1])
def test_what_claims_more_than_a_body_can_have_is_refused_unread(claimed: int) -> None:
    data = ZSTD_1 + SINGLE_SEGMENT_OF_8 + struct.pack("<Q", claimed) + PACKED[3:]
    with pytest.raises(PackedError, match="no size that a body can have"):
        unpacked(data)


def test_what_holds_more_than_it_claims_is_refused() -> None:
    honest = frame(bytes(10 * MOST_BYTES))
    assert len(honest) < MOST_BYTES // 1_000
    small = ZSTD_1 + SINGLE_SEGMENT_OF_8 + struct.pack("<Q", 100)
    with pytest.raises(PackedError):
        unpacked(small + honest[2 + 4 + 1 :])


def test_a_frame_without_a_size_is_refused() -> None:
    with pytest.raises(PackedError, match="no size"):
        unpacked(frame(body(SAID), write_content_size=False))


@pytest.mark.parametrize("extra", [b"\0", PACKED])
def test_what_follows_a_frame_is_damage(extra: bytes) -> None:
    with pytest.raises(PackedError):
        unpacked(PACKED + extra)


@pytest.mark.parametrize("byte", [0x06, 0x0F, 0xFF])
def test_a_way_of_a_newer_release_is_told(byte: int) -> None:
    with pytest.raises(PackedError, match="this release does not know"):
        unpacked(bytes([byte]) + PACKED[1:])


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "_of_thread", threading.local())
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(PackedError, match=r"foldlog\[zstd\]"):
        unpacked(PACKED)
    with pytest.raises(DriverMissingError, match=r"foldlog\[zstd\]"):
        packer_of("zstd")
    assert packer_of("none") is plain


def test_threads_pack_and_unpack_at_the_same_time() -> None:
    bodies = [body(f"{number} {SAID * (number % 50)}") for number in range(2_000)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda each: unpacked(pack(each)), bodies)) == bodies
