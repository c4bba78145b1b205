"""Attachments: put, got, asked for, and required of the events that name them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from foldlog.application.incoming import Incoming, require_size
from foldlog.application.meter import Meter
from foldlog.application.readers import Readers
from foldlog.core.errors import (
    AttachmentCorruptError,
    AttachmentNotFoundError,
    AttachmentUnknownError,
    InvalidFieldError,
    TooLargeError,
)
from foldlog.core.event import SURFACE_TYPES
from foldlog.core.validation import SHA256_BYTES
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.errors import NoDirectoryError, ObjectDamagedError
from foldlog.persistence.object_reading import OpenObject
from foldlog.persistence.object_upload import Upload
from foldlog.persistence.objects import ObjectStore
from foldlog.settings import Settings
from foldlog.v1.event_pb2 import EventBody
from foldlog.v1.message_pb2 import Message

if TYPE_CHECKING:
    from foldlog.application.lane import Lane

THREADS = 2
PIECE_BYTES = 256 * 1024
AT_ONCE = 500
# An attachment that is asked for is made young again once this part of its grace has passed, so
# that not every request for it writes.
FRESH_PART = 8

Prepare = Callable[["Lane"], Coroutine[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Named:
    """An attachment that a message names, and where."""

    path: str
    sha256: bytes
    size_bytes: int | None


def named_in(message: Message, path: str) -> Iterator[Named]:
    """Yield the attachments that a message names."""
    for index, part in enumerate(message.parts.parts):
        if part.HasField("attachment"):
            named = part.attachment
            size_bytes = named.size_bytes if named.HasField("size_bytes") else None
            yield Named(f"{path}.parts.parts[{index}].attachment", named.sha256, size_bytes)


def named_by(batch: Sequence[Incoming]) -> list[Named]:
    """Return the attachments that a batch's events name."""
    return [
        named
        for index, event in enumerate(batch)
        if event.message is not None and event.message.HasField("parts")
        for named in named_in(event.message, f"events[{index}].body.message")
    ]


def digests_of(envelope: Envelope) -> Iterator[bytes]:
    """Yield the digests of the attachments that an event's row names."""
    texts = envelope.header_texts
    yield from filter(None, (texts.system_prompt_sha256, texts.tools_sha256))
    if envelope.type in SURFACE_TYPES and len(envelope.body) > SHA256_BYTES:
        message = EventBody.FromString(envelope.body).message
        yield from (named.sha256 for named in named_in(message, ""))


@contextmanager
def as_ours() -> Iterator[None]:
    """Raise what the store says of attachments as a caller is to see it."""
    try:
        yield
    except ObjectDamagedError as error:
        raise AttachmentCorruptError(sha256=error.sha256.hex()) from error
    except NoDirectoryError as error:
        raise TooLargeError(
            f"data: more than {error.limit_bytes} bytes need a directory for attachments,"
            " and the server's FOLDLOG_OBJECT_DIRECTORY is not set",
            field="data",
            size=error.size_bytes,
            limit=error.limit_bytes,
        ) from error


class Attachments:
    """The attachments of a tenant."""

    def __init__(
        self,
        objects: ObjectStore,
        readers: Readers,
        threads: Readers,
        settings: Settings,
        meter: Meter,
        tenant: str,
    ) -> None:
        self._meter = meter
        self._objects = objects
        self._readers = readers
        self._threads = threads  # apart, for the long work of bytes in and out
        self._limit_bytes = settings.limits.attachment_bytes
        self._fresh_ns = int(settings.object_grace_s * 1e9) // FRESH_PART
        self._tenant = tenant

    # Bytes in

    async def put(
        self, pieces: AsyncIterator[bytes], sha256: bytes = b"", size_bytes: int | None = None
    ) -> tuple[bytes, int, bool]:
        """Store bytes and return (digest, size, whether they were stored, whole, already).

        A digest and a size that are given are compared. Memory stays constant whatever the size.
        """
        self.judge_size(size_bytes or 0, "header.size_bytes")
        upload = self.upload()
        try:
            async for piece in _gathered(pieces):
                _judge_so_far(upload.size_bytes + len(piece), size_bytes)
                self.judge_size(upload.size_bytes + len(piece), "data")
                await self._run(upload.write, piece)
            _judge_whole(upload, sha256, size_bytes)
            if self._meter.limits_bytes and not await self.sizes([upload.sha256]):
                self._meter.require_bytes(upload.size_bytes)
            digest, existed = await self._run(upload.finish)
            if not existed:
                self._meter.put(upload.size_bytes)
            return digest, upload.size_bytes, existed
        finally:
            await asyncio.shield(self._threads.run(upload.close))

    def upload(self) -> Upload:
        """Begin to put bytes on a thread of the caller's own."""
        return self._objects.upload(self._tenant)

    def judge_size(self, size_bytes: int, path: str) -> None:
        """Raise TooLargeError for more than an attachment may have."""
        require_size(path, size_bytes, self._limit_bytes)

    async def put_bytes(self, data: bytes) -> bytes:
        """Store bytes of the service's own, which are not many, and return their digest.

        Where there is no directory the database keeps them, whatever their size.
        """
        digest: bytes = await self._run(self._objects.put_bytes, self._tenant, data)
        return digest

    # Bytes out

    async def get(
        self, sha256: bytes, offset: int = 0, length: int = 0
    ) -> AsyncIterator[tuple[int, bytes]]:
        """Yield (size of the whole, next bytes) of a range; length 0 means all that follow.

        Raises AttachmentUnknownError, and AttachmentCorruptError in place of the first piece that
        is not what was put.
        """
        pieces = await self._threads.run(self.pieces, sha256, offset, length)
        try:
            while (piece := await self._threads.run(pieces.following)) is not None:
                yield pieces.size_bytes, piece
        finally:
            await asyncio.shield(self._threads.run(pieces.close))

    async def get_bytes(self, sha256: bytes) -> bytes:
        """Return bytes of the service's own. Raises as `get` does."""
        return b"".join([piece async for _, piece in self.get(sha256)])

    def pieces(self, sha256: bytes, offset: int = 0, length: int = 0) -> Pieces:
        """Open a range, for a thread of the caller's own. Raises as `get` does."""
        with as_ours():
            opened = self._objects.open(self._tenant, sha256)
        if opened is None:
            raise AttachmentUnknownError(sha256=sha256.hex())
        size = opened.stored.size_bytes
        if offset > size:
            opened.close()
            raise InvalidFieldError.of("offset", f"{offset} is past the {size} bytes there are")
        return Pieces(opened, offset, length or size - offset)

    # What is there

    async def sizes(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        """Return the sizes of those that are stored. From now on they are young again."""
        distinct = list(dict.fromkeys(digests))
        found: dict[bytes, int] = {}
        for start in range(0, len(distinct), AT_ONCE):
            part = distinct[start : start + AT_ONCE]
            found |= await self._readers.run(self._sizes, part)
        return found

    def _sizes(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        table, now_ns = self._objects.table, time.time_ns()
        found = table.sizes(self._tenant, digests)
        stale = [each for each, (_, ns) in found.items() if ns <= now_ns - self._fresh_ns]
        if table.touch(self._tenant, stale, now_ns) != len(stale):
            found = table.sizes(self._tenant, digests)  # a collection was faster
        return {digest: size for digest, (size, _) in found.items()}

    async def require(self, named: Sequence[Named]) -> None:
        """Raise unless the attachments are stored, in the sizes that are stated.

        They then stay for the grace at least, within which what names them is to be written.
        """
        if not named:
            return
        sizes = await self.sizes([each.sha256 for each in named])
        for each in named:
            size = sizes.get(each.sha256)
            if size is None:
                raise AttachmentNotFoundError(sha256=each.sha256.hex())
            if each.size_bytes is not None and each.size_bytes != size:
                wrong = f"{each.size_bytes} is stated, and {size} bytes are stored"
                raise InvalidFieldError.of(f"{each.path}.size_bytes", wrong)

    def preparing(self, batch: Sequence[Incoming], prepare: Prepare | None) -> Prepare | None:
        """Return what a write of these events is to prepare: what it is given, and `require`."""
        named = named_by(batch)
        if not named:
            return prepare

        async def both(lane: Lane) -> Any:
            await self.require(named)
            return None if prepare is None else await prepare(lane)

        return both

    def keeping(self, contents: Sequence[bytes], prepare: Prepare | None) -> Prepare:
        """Return what a write that names texts of the service's own is to prepare."""

        async def both(lane: Lane) -> Any:
            for content in contents:
                await self.put_bytes(content)
            return None if prepare is None else await prepare(lane)

        return both

    async def _run(self, function: Callable[..., Any], *args: Any) -> Any:
        def translating() -> Any:
            with as_ours():
                return function(*args)

        return await self._threads.run(translating)


class Pieces:
    """A range of an attachment, piece by piece, each verified before. Blocking."""

    def __init__(self, opened: OpenObject, offset: int, length: int) -> None:
        self._opened = opened
        self._pieces = opened.pieces(offset, length)
        # Whoever gives up may close while a piece is still being read.
        self._lock = Lock()
        self.size_bytes = opened.stored.size_bytes

    def following(self) -> bytes | None:
        """Return the next piece; None after the last."""
        with self._lock, as_ours():
            return next(self._pieces, None)

    def close(self) -> None:
        """Read no further."""
        with self._lock:
            self._opened.close()


async def _gathered(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the same bytes in pieces that are worth a thread's while."""
    waiting = bytearray()
    async for piece in pieces:
        waiting += piece
        if len(waiting) >= PIECE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    yield bytes(waiting)


def _judge_so_far(size: int, stated: int | None) -> None:
    if stated is not None and size > stated:
        raise InvalidFieldError.of("header.size_bytes", f"more than {stated} bytes came")


def _judge_whole(upload: Upload, sha256: bytes, size_bytes: int | None) -> None:
    if size_bytes is not None and upload.size_bytes != size_bytes:
        wrong = f"{size_bytes} is stated, and {upload.size_bytes} bytes came"
        raise InvalidFieldError.of("header.size_bytes", wrong)
    if sha256 and upload.sha256 != sha256:
        wrong = f"the bytes that came have {upload.sha256.hex()}"
        raise InvalidFieldError.of("header.sha256", wrong)
