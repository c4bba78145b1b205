"""Reading an attachment back: every piece is verified before anybody gets it."""

from __future__ import annotations

from collections.abc import Generator
from hashlib import sha256 as new_sha256
from types import TracebackType
from typing import Self

from foldlog.persistence.errors import ObjectDamagedError, UnavailableError
from foldlog.persistence.object_cipher import Decrypting
from foldlog.persistence.object_files import ObjectFiles, OpenFile
from foldlog.persistence.object_table import StoredObject

CHUNK_BYTES = 1024 * 1024
DIGEST_BYTES = 32


class OpenObject:
    """An attachment opened for reading. Raises ObjectDamagedError if its file is lost.

    In a directory it stays readable when it is removed or healed meanwhile.
    """

    def __init__(
        self,
        stored: StoredObject,
        files: ObjectFiles | None,
        decrypting: Decrypting | None = None,
        overhead_bytes: int = 0,
    ) -> None:
        self.stored = stored
        self._decrypting = decrypting
        self._overhead_bytes = overhead_bytes if decrypting is not None else 0
        self._file = None if stored.data is not None else _opened(stored, files)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()

    def pieces(self, offset: int, length: int) -> Generator[bytes]:
        """Yield a range, at least one piece, each verified; of the whole, its own digest as well.

        Raises ObjectDamagedError in place of the first piece that is not what was put.
        """
        stop = min(offset + length, self.stored.size_bytes)
        if self._file is not None:
            return self._from_file(self._file, offset, stop)
        return self._from_row(self.stored.data or b"", offset, stop)

    def is_whole(self) -> bool:
        """Read all of it and tell whether it is what was put."""
        try:
            for _ in self.pieces(0, self.stored.size_bytes):
                pass
        except ObjectDamagedError:
            return False
        return True

    def _from_row(self, data: bytes, offset: int, stop: int) -> Generator[bytes]:
        data = self._decrypted(0, data)
        self._require(len(data) == self.stored.size_bytes)
        self._require(new_sha256(data).digest() == self.stored.sha256)
        for start in range(offset, max(stop, offset + 1), CHUNK_BYTES):
            yield data[start : min(start + CHUNK_BYTES, stop)]

    def _from_file(self, file: OpenFile, offset: int, stop: int) -> Generator[bytes]:
        size, count = self.stored.size_bytes, -(-self.stored.size_bytes // CHUNK_BYTES)
        self._require(file.size_bytes == size + self._overhead_bytes * count)
        self._require(len(self.stored.chunks) == count * DIGEST_BYTES)
        whole = new_sha256() if (offset, stop) == (0, size) else None
        first = offset // CHUNK_BYTES
        for index in range(first, -(-stop // CHUNK_BYTES)):
            chunk, start = self._chunk(file, index), index * CHUNK_BYTES
            if whole is not None:
                whole.update(chunk)
                self._require(index < count - 1 or whole.digest() == self.stored.sha256)
            yield chunk[max(0, offset - start) : stop - start]
        if stop <= offset:
            yield b""

    def _chunk(self, file: OpenFile, index: int) -> bytes:
        try:
            stored_bytes = CHUNK_BYTES + self._overhead_bytes
            chunk = file.read(index * stored_bytes, stored_bytes)
        except OSError as error:
            raise ObjectDamagedError(self.stored.sha256) from error
        digest = self.stored.chunks[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES]
        self._require(new_sha256(chunk).digest() == digest)
        return self._decrypted(index, chunk)

    def _decrypted(self, index: int, piece: bytes) -> bytes:
        if self._decrypting is None:
            return piece
        decrypted = self._decrypting.decrypt(index, piece)
        if decrypted is None:
            raise ObjectDamagedError(self.stored.sha256)
        return decrypted

    def _require(self, is_right: bool) -> None:
        if not is_right:
            raise ObjectDamagedError(self.stored.sha256)


def _opened(stored: StoredObject, files: ObjectFiles | None) -> OpenFile:
    if files is None:
        raise UnavailableError("the setting that names the directory of attachments is unset")
    if stored.file is None:
        raise ObjectDamagedError(stored.sha256)
    try:
        return files.open(stored.file)
    except FileNotFoundError:
        raise ObjectDamagedError(stored.sha256) from None
