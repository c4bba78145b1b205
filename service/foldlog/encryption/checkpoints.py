"""A checkpoint recorder that encrypts checkpoints: a head has labels, metadata and a secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from google.protobuf.message import DecodeError

from foldlog.encryption.session_ciphers import SessionCiphers, framed
from foldlog.internal.v1.storage_pb2 import Checkpoint
from foldlog.persistence.checkpoints import CheckpointRecorder
from foldlog.persistence.errors import KeyDamagedError, MasterKeyMissingError
from foldlog.persistence.rows import row_id, row_tenant

CHECKPOINT = framed("checkpoint")


class EncryptedCheckpoints(CheckpointRecorder):
    """Writes and reads through another recorder."""

    def __init__(self, plain: CheckpointRecorder, ciphers: SessionCiphers) -> None:
        self._plain = plain
        self._ciphers = ciphers

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> None:
        ciphers = self._ciphers.ensure({row_id(e): row_tenant(e) for e in stored_events})
        encrypted = []
        for each in stored_events:
            version, cipher = each.originator_version, ciphers[row_id(each)]
            state = Checkpoint(encrypted=cipher.encrypt(CHECKPOINT, version, each.state))
            encrypted.append(replace(each, state=state.SerializeToString()))
        self._plain.insert_events(encrypted, **kwargs)

    def delete(self, originator_id: UUID) -> None:
        self._plain.delete(originator_id)

    def misfiled(self, originator_id: UUID, tenant: str) -> list[int]:
        return self._plain.misfiled(originator_id, tenant)

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        found = self._plain.select_events(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return [each for row in found if (each := self._decrypted(row)) is not None]

    def _decrypted(self, row: StoredEvent) -> StoredEvent | None:
        """Return a checkpoint, or None if it is lost: the rows themselves decide."""
        try:
            encrypted = Checkpoint.FromString(row.state).encrypted
            if not encrypted:
                return row
            cipher = self._ciphers.get(row_id(row))
            state = cipher.decrypt(CHECKPOINT, row.originator_version, encrypted)
        except (DecodeError, KeyDamagedError, MasterKeyMissingError):
            return None
        return replace(row, state=state)
