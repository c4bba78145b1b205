"""Attachments: small ones in the database, larger ones in a directory; verified both ways.

A large one is kept with the SHA-256 of each of its chunks, so that every piece is verified before
it is sent, and a range costs the chunks that it touches.
"""

from __future__ import annotations

from collections.abc import Container
from functools import partial

from foldlog.persistence.errors import MasterKeyMissingError, ObjectDamagedError
from foldlog.persistence.object_cipher import ObjectCipher
from foldlog.persistence.object_files import ObjectFiles
from foldlog.persistence.object_reading import OpenObject
from foldlog.persistence.object_table import ObjectTable, StoredObject
from foldlog.persistence.object_upload import Upload

NAMES_AT_ONCE = 500
ANY_SIZE = 2**62


class ObjectStore:
    """Puts and gets attachments, with a cipher encrypted. Blocking; any thread may call it."""

    def __init__(
        self,
        table: ObjectTable,
        files: ObjectFiles | None,
        inline_bytes: int,
        cipher: ObjectCipher | None = None,
    ) -> None:
        self.table = table
        self._files = files
        self._inline_bytes = inline_bytes
        self._cipher = cipher

    def encrypted(self, cipher: ObjectCipher) -> ObjectStore:
        """Return the same store as one that encrypts what it puts."""
        return ObjectStore(self.table, self._files, self._inline_bytes, cipher)

    def upload(self, tenant: str) -> Upload:
        """Begin to put bytes. Whoever begins closes."""
        return self._upload(tenant, self._inline_bytes)

    def _upload(self, tenant: str, inline_bytes: int) -> Upload:
        encrypting = None if self._cipher is None else self._cipher.begin()
        opened = partial(self._opened, tenant)
        return Upload(self.table, self._files, inline_bytes, tenant, opened, encrypting)

    def put_bytes(self, tenant: str, data: bytes) -> bytes:
        """Put bytes and return their digest. Without a directory the row takes them all."""
        inline_bytes = ANY_SIZE if self._files is None else self._inline_bytes
        upload = self._upload(tenant, inline_bytes)
        try:
            upload.write(data)
            return upload.finish()[0]
        finally:
            upload.close()

    def open(self, tenant: str, sha256: bytes) -> OpenObject | None:
        """Open an attachment, if it is stored. Whoever opens closes.

        Raises ObjectDamagedError if its file is lost, and MasterKeyMissingError.
        """
        while (stored := self.table.find(tenant, sha256)) is not None:
            try:
                return self._opened(tenant, stored)
            except ObjectDamagedError:
                # Healed or collected since the row was read, unless the row is the same.
                if self.table.find(tenant, sha256) == stored:
                    raise
        return None

    def _opened(self, tenant: str, stored: StoredObject) -> OpenObject:
        if stored.key_id is None:
            return OpenObject(stored, self._files)
        if self._cipher is None:
            raise MasterKeyMissingError(stored.key_id)
        key = stored.key_id, stored.wrapped or b""
        decrypting = self._cipher.open(tenant, stored.sha256, *key)
        return OpenObject(stored, self._files, decrypting, self._cipher.overhead_bytes)

    def remove(self, file: str | None) -> None:
        """Remove the file that a deleted row named."""
        if file is not None and self._files is not None:
            self._files.remove(file)

    def remove_unnamed(
        self, tenant: str, before_s: float, digests: Container[bytes] | None = None
    ) -> None:
        """Remove files that no row names, of some digests or all: a crash may leave one.

        Recent ones stay.
        """
        if self._files is None:
            return
        self._files.remove_abandoned()
        for names in self._files.old_names(tenant, before_s):
            ordered = sorted(
                name for name, digest in names.items() if digests is None or digest in digests
            )
            for start in range(0, len(ordered), NAMES_AT_ONCE):
                part = ordered[start : start + NAMES_AT_ONCE]
                named = self.table.files(tenant, sorted({names[name] for name in part}))
                for name in set(part) - named:
                    self._files.remove(name)
