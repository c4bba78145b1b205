"""Keys that heads are signed with, and the public ones that signatures are checked with.

Ed25519 by `cryptography`, which the extra foldlog[crypto] brings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Self

from foldlog.core.anchor import Anchor
from foldlog.private_file import require_private

try:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
except ImportError as error:
    raise ImportError(
        f"signing needs what the extra foldlog[crypto] brings: {error}", name=error.name
    ) from error

MOST_BYTES = 64 * 1024
END = b"-----END PUBLIC KEY-----"


class SigningKeyError(ValueError):
    """A file holds no key that can be used. The message never says what it holds."""


def key_id_of(public_key: bytes) -> bytes:
    """Return the id of a key: SHA-256 of its 32 public bytes."""
    return sha256(public_key).digest()


class SigningKey:
    """A private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key = key.public_key().public_bytes_raw()
        self.key_id = key_id_of(self.public_key)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key from a file that only its owner, and a group that cannot write, can read.

        Raises SigningKeyError.
        """
        _require_private(path)
        try:
            key = serialization.load_pem_private_key(_read(path), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise SigningKeyError(f"{path} holds no unencrypted private key in PEM") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SigningKeyError(f"the key in {path} is not of Ed25519")
        return cls(key)

    @classmethod
    def make(cls, path: Path) -> Self:
        """Make a key and write it to a new file of mode 0600.

        Raises FileExistsError: a key is never overwritten.
        """
        key = Ed25519PrivateKey.generate()
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        text = key.private_bytes(serialization.Encoding.PEM, *form)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # whatever the umask
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return cls(key)

    def sign(self, data: bytes) -> bytes:
        """Return the signature of some bytes."""
        return self._key.sign(data)

    def public_text(self) -> bytes:
        """Return the public key in PEM."""
        form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        return self._key.public_key().public_bytes(*form)


class PublicKeys:
    """The keys whose signatures are accepted: after a rotation those from before it too."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._keys = {key_id_of(key): Ed25519PublicKey.from_public_bytes(key) for key in keys}

    @classmethod
    def read(cls, paths: Iterable[Path]) -> Self:
        """Read files of public keys in PEM, each with one or more. Raises SigningKeyError."""
        return cls(key for path in paths for key in _public_keys(path))

    def knows(self, key_id: bytes) -> bool:
        """Tell whether a key is among them."""
        return key_id in self._keys

    def signed(self, anchor: Anchor) -> bool:
        """Tell whether one of the keys signed exactly this anchor."""
        key = self._keys.get(anchor.key_id)
        if key is None:
            return False
        try:
            key.verify(anchor.signature, anchor.signed_bytes())
        except InvalidSignature:
            return False
        return True


def _public_keys(path: Path) -> list[bytes]:
    found = []
    for part in _read(path).split(END)[:-1]:
        try:
            key = serialization.load_pem_public_key(part + END)
        except (ValueError, UnsupportedAlgorithm):
            raise SigningKeyError(f"{path} holds a public key that does not parse") from None
        if not isinstance(key, Ed25519PublicKey):
            raise SigningKeyError(f"a key in {path} is not of Ed25519")
        found.append(key.public_bytes_raw())
    if not found:
        raise SigningKeyError(f"{path} holds no public key in PEM")
    return found


def _require_private(path: Path) -> None:
    try:
        require_private(path)
    except OSError as error:
        raise SigningKeyError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SigningKeyError(str(error)) from None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise SigningKeyError(f"{path} cannot be read: {error.strerror}") from None
