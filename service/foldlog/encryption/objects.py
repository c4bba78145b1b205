"""The cipher of attachments: each has a key of its own, which goes when its row goes."""

from __future__ import annotations

from secrets import token_bytes

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foldlog.encryption.master_keys import KEY_BYTES, NONCE_BYTES, MasterKeys, Wrapped
from foldlog.persistence.errors import KeyDamagedError, ObjectDamagedError

TAG_BYTES = 16


class AttachmentCipher:
    """Encrypts attachments piece by piece.

    A key is drawn for every upload, so that the number of a piece serves as its nonce and says
    where it belongs. The key is wrapped for one tenant's attachment of one digest.
    """

    overhead_bytes = TAG_BYTES

    def __init__(self, masters: MasterKeys) -> None:
        self._masters = masters

    def begin(self) -> Pieces:
        """Begin an upload."""
        return Pieces(self._masters, token_bytes(KEY_BYTES))

    def open(self, tenant: str, sha256: bytes, key_id: str, wrapped: bytes) -> Pieces:
        """Begin to read. Raises MasterKeyMissingError, and ObjectDamagedError for a damaged key."""
        try:
            key = self._masters.unwrap(Wrapped(key_id, wrapped), context_of(tenant, sha256))
        except KeyDamagedError as error:
            raise ObjectDamagedError(sha256) from error
        return Pieces(self._masters, key)


class Pieces:
    """The pieces of one attachment."""

    def __init__(self, masters: MasterKeys, key: bytes) -> None:
        self._masters = masters
        self._key = key
        self._cipher = AESGCM(key)

    def encrypt(self, index: int, piece: bytes) -> bytes:
        """Return a piece encrypted."""
        return self._cipher.encrypt(index.to_bytes(NONCE_BYTES), piece, None)

    def decrypt(self, index: int, piece: bytes) -> bytes | None:
        """Return a piece as it was, or None if it is not what was encrypted."""
        try:
            return self._cipher.decrypt(index.to_bytes(NONCE_BYTES), piece, None)
        except (InvalidTag, ValueError):
            return None

    def wrapped(self, tenant: str, sha256: bytes) -> tuple[str, bytes]:
        """Return the upload's key, wrapped for an attachment."""
        return self._masters.wrap(self._key, context_of(tenant, sha256))


def context_of(tenant: str, sha256: bytes) -> bytes:
    """Return what an attachment's key is bound to when it is wrapped."""
    return b"foldlog attachment" + sha256 + tenant.encode()
