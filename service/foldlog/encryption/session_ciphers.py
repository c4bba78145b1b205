"""Sessions' ciphers: their data keys, made when first needed, and what they encrypt."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from secrets import token_bytes
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foldlog.application.kept import SharedKept
from foldlog.encryption.master_keys import KEY_BYTES, NONCE_BYTES, MasterKeys, Wrapped
from foldlog.persistence.data_keys import DataKeyRow, DataKeyTable
from foldlog.persistence.errors import KeyDamagedError, MasterKeyMissingError

KEPT_KEYS = 50_000


def framed(text: str) -> bytes:
    """Return a text with its length before it."""
    encoded = text.encode()
    return len(encoded).to_bytes(4) + encoded


class SessionCipher:
    """Encrypts what belongs to one session.

    AES-256-GCM under the session's data key, with a random nonce drawn for every encryption: a
    version whose commit failed may be decided again with other bytes, so that no nonce may be made
    from it. 2^32 encryptions under one key are safe; what one session can hold is far below.
    """

    def __init__(self, tenant: str, aggregate_id: UUID, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._place = framed(tenant) + aggregate_id.bytes

    def encrypt(self, purpose: bytes, version: int, data: bytes) -> bytes:
        """Return data encrypted, bound to what it is, which is framed, and where it stands."""
        nonce = token_bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, self._bound(purpose, version))

    def decrypt(self, purpose: bytes, version: int, data: bytes) -> bytes:
        """Return what was encrypted. Raises KeyDamagedError if it was not this, here."""
        nonce, encrypted = data[:NONCE_BYTES], data[NONCE_BYTES:]
        try:
            return self._cipher.decrypt(nonce, encrypted, self._bound(purpose, version))
        except (InvalidTag, ValueError) as error:
            raise KeyDamagedError("it does not decrypt") from error

    def _bound(self, purpose: bytes, version: int) -> bytes:
        return purpose + self._place + version.to_bytes(8)


KeptCiphers = SharedKept[UUID, SessionCipher]


def kept_ciphers() -> KeptCiphers:
    """Return room for the ciphers of the sessions that are in use."""
    return SharedKept(KEPT_KEYS, lambda _: 1)


class SessionCiphers:
    """The ciphers of sessions by aggregate id. Blocking; any thread may call it."""

    def __init__(self, table: DataKeyTable, masters: MasterKeys, kept: KeptCiphers) -> None:
        self._table = table
        self._masters = masters
        self._kept = kept

    def get(self, aggregate_id: UUID) -> SessionCipher:
        """Return a session's cipher. Raises MasterKeyMissingError or KeyDamagedError."""
        cipher = self._kept.get(aggregate_id)
        if cipher is not None:
            return cipher
        rows = self._table.find([aggregate_id])
        if not rows:
            raise KeyDamagedError("its data key is not stored")
        return self._keep(rows[0])

    def load(self, aggregate_ids: Collection[UUID]) -> None:
        """Read what `get` will be asked for at once. What cannot be unwrapped `get` tells."""
        unknown = [each for each in aggregate_ids if self._kept.get(each) is None]
        if len(unknown) < 2:
            return
        for row in self._table.find(unknown):
            with suppress(MasterKeyMissingError, KeyDamagedError):
                self._keep(row)

    def ensure(self, owners: Mapping[UUID, str]) -> dict[UUID, SessionCipher]:
        """Return the ciphers of sessions, given with their tenants; who has no key gets one.

        A key is stored before anything is encrypted under it. Of processes that make one at the
        same time, one is first, and all use its key.
        """
        found = {each: self._kept.get(each) for each in owners}
        missing = [each for each, cipher in found.items() if cipher is None]
        if missing:
            made = [self._made(owners[each], each) for each in missing]
            if self._table.insert(made) < len(made):
                made = self._table.find(missing)
            found |= {row.aggregate_id: self._keep(row) for row in made}
        return {each: cipher for each, cipher in found.items() if cipher is not None}

    def _made(self, tenant: str, aggregate_id: UUID) -> DataKeyRow:
        wrapped = self._masters.wrap(token_bytes(KEY_BYTES), context_of(tenant, aggregate_id))
        return DataKeyRow(tenant, aggregate_id, *wrapped)

    def _keep(self, row: DataKeyRow) -> SessionCipher:
        context = context_of(row.tenant, row.aggregate_id)
        key = self._masters.unwrap(Wrapped(row.key_id, row.wrapped), context)
        cipher = SessionCipher(row.tenant, row.aggregate_id, key)
        self._kept.keep(row.aggregate_id, cipher)
        return cipher


def context_of(tenant: str, aggregate_id: UUID) -> bytes:
    """Return what a session's data key is bound to when it is wrapped."""
    return b"foldlog session" + framed(tenant) + aggregate_id.bytes
