"""Bodies of rows, compressed: a byte that says how, and then a frame of zstd.

An encoded body is a protobuf message, whose first byte never has wire type 6 or 7. So the byte
tells a packed body from a plain one, and both stand in the same field and table for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from foldlog.persistence.errors import DriverMissingError, zstd_extra

if TYPE_CHECKING:
    from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor

Packer = Callable[[bytes], bytes]

ZSTD_1: Final = b"\x07"  # a frame without its magic number, made with dictionary 1
DICTIONARY_1: Final = "zstd_1.dictionary"
WIRE_TYPE: Final = 7
FIRST_UNUSED_WIRE_TYPE: Final = 6
# Higher levels gain nothing on bodies of a few kB: 0.5900, 0.5901 and 0.5893 of the workload's JSON
# at 3, 9 and 19.
LEVEL: Final = 3
LEAST_BYTES: Final = 64
# Larger bodies stay plain, and a frame that claims more is damaged: what it claims is allocated.
MOST_BYTES: Final = 64 * 1024 * 1024

_of_thread = threading.local()


class PackedError(ValueError):
    """A packed body cannot be read; the message says why, in words that follow "it"."""


def plain(body: bytes) -> bytes:
    """Return a body as it is: the packer that packs nothing."""
    return body


def packer_of(compression: str) -> Packer:
    """Return the packer of a setting. Raises DriverMissingError without the extra."""
    if compression == "none":
        return plain
    _compressor()
    return pack


def pack(body: bytes) -> bytes:
    """Return a body packed, or as it is where that is no longer."""
    if not LEAST_BYTES <= len(body) <= MOST_BYTES:
        return body
    packed = ZSTD_1 + _compressor().compress(body)
    return packed if len(packed) < len(body) else body


def is_packed(body: bytes) -> bool:
    """Tell whether a body is packed, in a way that this release knows or in another one."""
    return bool(body) and body[0] & WIRE_TYPE >= FIRST_UNUSED_WIRE_TYPE


def unpacked(body: bytes) -> bytes:
    """Return a body as it was before it was packed, if it was.

    Raises PackedError: it is damaged, of a newer release, or the extra is missing. Allocates no
    more than MOST_BYTES, whatever the frame claims.
    """
    if not is_packed(body):
        return body
    if body[:1] != ZSTD_1:
        raise PackedError(f"is compressed in a way ({body[0]}) that this release does not know")
    try:
        return _decompressed(body[1:])
    except DriverMissingError as error:
        raise PackedError("is compressed, and reading it needs the extra foldlog[zstd]") from error


def _decompressed(frame: bytes) -> bytes:
    with zstd_extra():
        from zstandard import FORMAT_ZSTD1_MAGICLESS, ZstdError, get_frame_parameters
    try:
        claimed = get_frame_parameters(frame, format=FORMAT_ZSTD1_MAGICLESS).content_size
        if claimed > MOST_BYTES:  # a size that is not said is greater than any
            raise PackedError("does not decompress: its frame says no size that a body can have")
        return _decompressor().decompress(frame, allow_extra_data=False)
    except ZstdError as error:
        raise PackedError("does not decompress") from error


def _compressor() -> ZstdCompressor:
    """Return the thread's compressor; two threads must not use one."""
    found: ZstdCompressor | None = getattr(_of_thread, "compressor", None)
    if found is None:
        with zstd_extra():
            from zstandard import (
                FORMAT_ZSTD1_MAGICLESS,
                ZstdCompressionParameters,
                ZstdCompressor,
            )
        # No checksum: the commitment is over the plain body.
        parameters = ZstdCompressionParameters.from_level(
            LEVEL,
            format=FORMAT_ZSTD1_MAGICLESS,
            write_content_size=True,
            write_checksum=False,
            write_dict_id=False,
        )
        found = ZstdCompressor(compression_params=parameters, dict_data=_dictionary())
        _of_thread.compressor = found
    return found


def _decompressor() -> ZstdDecompressor:
    found: ZstdDecompressor | None = getattr(_of_thread, "decompressor", None)
    if found is None:
        from zstandard import FORMAT_ZSTD1_MAGICLESS, ZstdDecompressor

        found = ZstdDecompressor(dict_data=_dictionary(), format=FORMAT_ZSTD1_MAGICLESS)
        _of_thread.decompressor = found
    return found


@cache
def _dictionary() -> ZstdCompressionDict:
    from zstandard import DICT_TYPE_FULLDICT, ZstdCompressionDict

    data = files(__name__).joinpath(DICTIONARY_1).read_bytes()
    return ZstdCompressionDict(data, dict_type=DICT_TYPE_FULLDICT)
