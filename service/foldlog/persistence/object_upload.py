"""Putting an attachment: bytes in, in constant memory; a row that names what is durable."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256 as new_sha256
from threading import Lock

from foldlog.persistence.errors import NoDirectoryError, ObjectDamagedError, UnavailableError
from foldlog.persistence.object_cipher import Encrypting
from foldlog.persistence.object_files import IncomingFile, ObjectFiles
from foldlog.persistence.object_reading import CHUNK_BYTES, OpenObject
from foldlog.persistence.object_table import ObjectTable, StoredObject

ATTEMPTS = 100


class Upload:
    """Bytes on their way in. Nothing of them stays unless it is finished. Blocking.

    Up to `inline_bytes` they go into the row, beyond into a file. What is stored already is opened
    by `opened`.
    """

    def __init__(
        self,
        table: ObjectTable,
        files: ObjectFiles | None,
        inline_bytes: int,
        tenant: str,
        opened: Callable[[StoredObject], OpenObject],
        encrypting: Encrypting | None = None,
    ) -> None:
        self._table = table
        self._files = files
        self._inline_bytes = inline_bytes
        self._tenant = tenant
        self._opened = opened
        self._encrypting = encrypting
        self._chunk_count = 0
        self._digest = new_sha256()
        self._pending = bytearray()
        self._chunks = bytearray()
        self._file: IncomingFile | None = None
        self._published: str | None = None
        # Whoever gives up may close while a write is still under way.
        self._lock = Lock()
        self.size_bytes = 0

    @property
    def sha256(self) -> bytes:
        """The digest of the bytes so far."""
        return self._digest.digest()

    def write(self, data: bytes) -> None:
        """Take the next bytes. Raises NoDirectoryError for more than the database is to hold."""
        with self._lock:
            self._digest.update(data)
            self._pending += data
            self.size_bytes += len(data)
            if self.size_bytes > self._inline_bytes:
                self._write_chunks()

    def _write_chunks(self) -> None:
        if self._file is None:
            if self._files is None:
                raise NoDirectoryError(self.size_bytes, self._inline_bytes)
            self._file = self._files.begin()
        while len(self._pending) >= CHUNK_BYTES:
            self._write_chunk(self._file)

    def _write_chunk(self, file: IncomingFile) -> None:
        chunk = bytes(self._pending[:CHUNK_BYTES])
        del self._pending[:CHUNK_BYTES]
        chunk = self._encrypted(self._chunk_count, chunk)
        self._chunk_count += 1
        self._chunks += new_sha256(chunk).digest()
        file.write(chunk)

    def _encrypted(self, index: int, piece: bytes) -> bytes:
        return piece if self._encrypting is None else self._encrypting.encrypt(index, piece)

    def finish(self) -> tuple[bytes, bool]:
        """Store the bytes unless they are there; return (digest, whether they were, whole)."""
        with self._lock:
            for _ in range(ATTEMPTS):
                existed = self._settled()
                if existed is not None:
                    return self.sha256, existed
        raise UnavailableError("an attachment changes with each attempt to put it")

    def _settled(self) -> bool | None:
        """Store the bytes, or find them, or return None if somebody else changed what is there."""
        table, tenant = self._table, self._tenant
        known = table.find(tenant, self.sha256)
        if known is None:
            return False if self._write(partial(table.insert, tenant)) else None
        if self._is_whole(known):
            return True if table.touch(tenant, [self.sha256], time.time_ns()) else None
        if not self._write(partial(table.replace, tenant, known)):
            return None
        self._remove(known.file)
        return False

    def _is_whole(self, known: StoredObject) -> bool:
        try:
            with self._opened(known) as opened:
                return opened.is_whole()
        except ObjectDamagedError:
            return False

    def _write(self, write: Callable[[StoredObject], bool]) -> bool:
        stored = self._stored()
        # Should it fail, nobody knows whether a row names the file now: then the file stays.
        self._published = None
        if write(stored):
            return True
        self._published = stored.file
        return False

    def _stored(self) -> StoredObject:
        """Return the row to write. Its file is durable before."""
        now_ns = time.time_ns()
        if self._file is not None:
            self._published = self._publish(self._file)
        data = None if self._published else self._encrypted(0, bytes(self._pending))
        about = (self.sha256, self.size_bytes, now_ns, now_ns)
        return StoredObject(*about, self._published, bytes(self._chunks), data, *self._key())

    def _key(self) -> tuple[str | None, bytes | None]:
        if self._encrypting is None:
            return None, None
        return self._encrypting.wrapped(self._tenant, self.sha256)

    def _publish(self, file: IncomingFile) -> str:
        if self._pending:
            self._write_chunk(file)
        name = file.publish(self._tenant, self.sha256)
        self._file = None
        return name

    def close(self) -> None:
        """Forget what was not finished."""
        with self._lock:
            self._remove(self._published)
            if self._file is not None:
                self._file.discard()
                self._file = None

    def _remove(self, file: str | None) -> None:
        if file is not None and self._files is not None:
            self._files.remove(file)
