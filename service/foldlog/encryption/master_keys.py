"""Master keys: what wraps data keys, and is never stored with them."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from secrets import token_bytes
from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foldlog.persistence.errors import KeyDamagedError, MasterKeyMissingError

KEY_BYTES = 32
NONCE_BYTES = 12
KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Wrapped(NamedTuple):
    """A key, wrapped by the master key of an id."""

    key_id: str
    data: bytes


class MasterKeys(Protocol):
    """Wraps keys: with keys of its own, or by asking a key management service.

    `context` says what a key is for; a key wrapped for one thing is not unwrapped for another. Both
    block, and any thread calls them.
    """

    current_id: str

    def has(self, key_id: str) -> bool:
        """Tell whether keys that this master key wrapped can be unwrapped."""

    def wrap(self, key: bytes, context: bytes) -> Wrapped:
        """Wrap a key by the current master key."""

    def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        """Return a key. Raises MasterKeyMissingError or KeyDamagedError."""


class LocalMasterKeys:
    """Master keys held in memory: AES-256-GCM, a random nonce before each wrapped key."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self.current_id = next(iter(keys))
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}

    def has(self, key_id: str) -> bool:
        """Tell whether a master key is here."""
        return key_id in self._ciphers

    def wrap(self, key: bytes, context: bytes) -> Wrapped:
        """Wrap a key by the first master key."""
        nonce = token_bytes(NONCE_BYTES)
        encrypted = self._ciphers[self.current_id].encrypt(nonce, key, context)
        return Wrapped(self.current_id, nonce + encrypted)

    def unwrap(self, wrapped: Wrapped, context: bytes) -> bytes:
        """Return a key. Raises MasterKeyMissingError or KeyDamagedError."""
        cipher = self._ciphers.get(wrapped.key_id)
        if cipher is None:
            raise MasterKeyMissingError(wrapped.key_id)
        nonce, encrypted = wrapped.data[:NONCE_BYTES], wrapped.data[NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, encrypted, context)
        except (InvalidTag, ValueError) as error:
            raise KeyDamagedError("a wrapped key is not as it was stored") from error


def parse(text: str) -> dict[str, bytes]:
    """Return the master keys of a text: ID:BASE64 one after the other, # begins a comment.

    Raises ValueError, which names the place and never what stands there.
    """
    keys: dict[str, bytes] = {}
    lines = (line.partition("#")[0] for line in text.splitlines())
    for number, word in enumerate((word for line in lines for word in line.split()), 1):
        key_id, _, encoded = word.partition(":")
        key = _key(encoded)
        if not KEY_ID.fullmatch(key_id) or key is None:
            raise ValueError(f"master key {number} is not ID:BASE64 with {KEY_BYTES} bytes")
        if key_id in keys:
            raise ValueError(f"there are two master keys {key_id!r}")
        keys[key_id] = key
    if not keys:
        raise ValueError("there is no master key")
    return keys


def _key(encoded: str) -> bytes | None:
    try:
        key = b64decode(encoded, validate=True)
    except (Base64Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def new_line(key_id: str) -> str:
    """Return a new master key as a line of a file. Raises ValueError for an id that is none."""
    if not KEY_ID.fullmatch(key_id):
        raise ValueError("an id of a master key is 1 to 64 letters, digits, dots, _ or -")
    return f"{key_id}:{b64encode(token_bytes(KEY_BYTES)).decode()}"
