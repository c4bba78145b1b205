"""An open store made into one that encrypts."""

from __future__ import annotations

from dataclasses import replace

from foldlog.encryption.checkpoints import EncryptedCheckpoints
from foldlog.encryption.index import EncryptedIndex
from foldlog.encryption.master_keys import MasterKeys
from foldlog.encryption.objects import AttachmentCipher
from foldlog.encryption.recorder import EncryptedRecorder
from foldlog.encryption.session_ciphers import KeptCiphers, SessionCiphers, kept_ciphers
from foldlog.persistence.store import Store


def encrypted(plain: Store, masters: MasterKeys) -> Store:
    """Return a store that encrypts what it writes to another one."""
    return _encrypted(plain, masters, kept_ciphers())


def _encrypted(plain: Store, masters: MasterKeys, kept: KeptCiphers) -> Store:
    ciphers, scoped = SessionCiphers(plain.data_keys, masters, kept), plain.scoped
    attachments = AttachmentCipher(masters)
    return replace(
        plain,
        recorder=EncryptedRecorder(plain.recorder, ciphers),
        checkpoints=EncryptedCheckpoints(plain.checkpoints, ciphers),
        index=EncryptedIndex(plain.index, ciphers),
        objects=plain.objects.encrypted(attachments),
        data_keys=plain.data_keys.telling(kept.forget),
        throwaway=attachments.begin,  # a key that is never wrapped is gone with the process
        scoped=scoped and (lambda tenant: _encrypted(scoped(tenant), masters, kept)),
    )
