"""What the store of attachments asks of whoever encrypts them."""

from __future__ import annotations

from typing import Protocol


class Encrypting(Protocol):
    """Encrypts the pieces of one upload, under a key of its own."""

    def encrypt(self, index: int, piece: bytes) -> bytes:
        """Return a piece encrypted. An index may be given again with the same bytes only."""

    def wrapped(self, tenant: str, sha256: bytes) -> tuple[str, bytes]:
        """Return the id of a master key, and the upload's key wrapped by it for this attachment."""


class Decrypting(Protocol):
    """Decrypts the pieces of one attachment."""

    def decrypt(self, index: int, piece: bytes) -> bytes | None:
        """Return a piece as it was, or None if it is not what was encrypted."""


class Throwaway(Protocol):
    """Encrypts the pieces of what is put down for a while, under a key that is never stored."""

    def encrypt(self, index: int, piece: bytes) -> bytes:
        """Return a piece encrypted. No index is given twice."""

    def decrypt(self, index: int, piece: bytes) -> bytes | None:
        """Return a piece as it was, or None if it is not what was encrypted."""


class ObjectCipher(Protocol):
    """Encrypts attachments."""

    overhead_bytes: int  # by how much each piece grows

    def begin(self) -> Encrypting:
        """Begin an upload."""

    def open(self, tenant: str, sha256: bytes, key_id: str, wrapped: bytes) -> Decrypting:
        """Begin to read. Raises MasterKeyMissingError, and ObjectDamagedError for a damaged key."""
