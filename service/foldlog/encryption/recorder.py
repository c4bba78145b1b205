"""An event recorder that encrypts the bodies of rows and decrypts them again.

All else of an envelope stays in clear, so that a chain can be verified without the key: it goes
over the commitments to the bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, StoredEvent, Subscription
from google.protobuf.message import DecodeError

from foldlog.application.domain import Session
from foldlog.encryption.session_ciphers import SessionCipher, SessionCiphers, framed
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.persistence.errors import KeyDamagedError, MasterKeyMissingError
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.rows import SessionNotification, WholeRow, row_id, row_tenant
from foldlog.persistence.subscription import SessionSubscription

BODY = framed("body")

ERASED = Session.Erased.TOPIC

R = TypeVar("R", bound=StoredEvent)


class EncryptedRecorder(SessionRecorder):
    """Writes and reads through another recorder. Rows that were stored in clear are read too."""

    def __init__(self, plain: SessionRecorder, ciphers: SessionCiphers) -> None:
        self._plain = plain
        self._ciphers = ciphers

    # In

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        return self._plain.insert_events(self._encrypted(stored_events), **kwargs)

    def insert_chunks(self, chunks: Iterable[Sequence[StoredEvent]]) -> int:
        following = iter(chunks)
        first = next(following, [])
        # Before the transaction begins that holds the rows: keys are written apart from them.
        self._ensured(first)
        return self._plain.insert_chunks(map(self._encrypted, chain([first], following)))

    def replace_states(self, originator_id: UUID, states: Sequence[tuple[int, bytes]]) -> None:
        cipher = None
        encrypted = []
        for version, state in states:
            envelope = Envelope.FromString(state)
            if envelope.body and not envelope.encrypted_body:
                cipher = cipher or self._ciphers.get(originator_id)
                state = encrypted_state(envelope, cipher, version)
            encrypted.append((version, state))
        self._plain.replace_states(originator_id, encrypted)

    def _ensured(self, rows: Sequence[StoredEvent]) -> dict[UUID, SessionCipher]:
        """Return the ciphers of sessions; the row that outlives a session's key needs none."""
        wanted = (row for row in rows if row.topic != ERASED)
        return self._ciphers.ensure({row_id(row): row_tenant(row) for row in wanted})

    def _encrypted(self, rows: Sequence[StoredEvent]) -> list[StoredEvent]:
        ciphers = self._ensured(rows)
        return [_encrypted(row, ciphers.get(row_id(row))) for row in rows]

    # Out

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> Sequence[StoredEvent]:
        return self._decrypted(
            self._plain.select_events(
                originator_id, gt=gt, lte=lte, desc=desc, limit=limit, max_bytes=max_bytes
            )
        )

    def select_whole(self, originator_id: UUID, gt: int, max_bytes: int) -> list[WholeRow]:
        return self._decrypted(self._plain.select_whole(originator_id, gt, max_bytes))

    def select_versions(self, originator_id: UUID, versions: Sequence[int]) -> list[StoredEvent]:
        return self._decrypted(self._plain.select_versions(originator_id, versions))

    def find_request(self, originator_id: UUID, request_key: bytes) -> StoredEvent | None:
        found = self._plain.find_request(originator_id, request_key)
        return None if found is None else self._decrypted([found])[0]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
        max_bytes: int | None = None,
    ) -> Sequence[SessionNotification]:
        return self._decrypted(
            self._plain.select_notifications(
                start,
                limit,
                stop,
                topics,
                inclusive_of_start=inclusive_of_start,
                max_bytes=max_bytes,
            )
        )

    def select_tenant_notifications(
        self, tenant: str, after_id: int, limit: int, max_bytes: int
    ) -> tuple[list[SessionNotification], int]:
        found, reached = self._plain.select_tenant_notifications(tenant, after_id, limit, max_bytes)
        return self._decrypted(found), reached

    def _decrypted(self, rows: Sequence[R]) -> list[R]:
        envelopes = [_closed(row) for row in rows]
        self._ciphers.load(
            {row_id(row) for row, closed in zip(rows, envelopes, strict=True) if closed}
        )
        return [
            row if closed is None else self._opened(row, closed)
            for row, closed in zip(rows, envelopes, strict=True)
        ]

    def _opened(self, row: R, envelope: Envelope) -> R:
        """Return a row with its body, or with a note of why it has none."""
        try:
            cipher = self._ciphers.get(row_id(row))
            body = cipher.decrypt(BODY, row.originator_version, envelope.encrypted_body)
        except MasterKeyMissingError as error:
            envelope.still_encrypted.missing_key_id = error.key_id
        except KeyDamagedError:
            envelope.still_encrypted.SetInParent()
        else:
            envelope.ClearField("encrypted_body")
            envelope.body = body
        return replace(row, state=envelope.SerializeToString())

    # What holds no body

    def last_version(self, originator_id: UUID) -> int | None:
        return self._plain.last_version(originator_id)

    def is_held(self, stored_event: StoredEvent) -> bool:
        return self._plain.is_held(stored_event)

    def max_notification_id(self) -> int | None:
        return self._plain.max_notification_id()

    def last_stored_id(self) -> int:
        return self._plain.last_stored_id()

    def count_tenant_rows(self, tenant: str, after_id: int, most: int) -> int:
        return self._plain.count_tenant_rows(tenant, after_id, most)

    def select_changes(self, after_id: int, limit: int) -> list[tuple[int, UUID, int]]:
        return self._plain.select_changes(after_id, limit)

    def select_heads(
        self, tenant: str, after_id: int, stop: int, limit: int
    ) -> list[tuple[int, UUID, int]]:
        return self._plain.select_heads(tenant, after_id, stop, limit)

    def let_go(self) -> None:
        self._plain.let_go()

    def notify(self) -> None:
        self._plain.notify()

    def wait_for_hint(self, timeout_s: float) -> bool:
        return self._plain.wait_for_hint(timeout_s)

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        return SessionSubscription(self, gt, topics)


def _closed(row: StoredEvent) -> Envelope | None:
    """Return the envelope of a row whose body is encrypted; None of any other."""
    try:
        envelope = Envelope.FromString(row.state)
    except DecodeError:
        return None  # for the reader of rows to tell
    return envelope if envelope.encrypted_body else None


def _encrypted(row: StoredEvent, cipher: SessionCipher | None) -> StoredEvent:
    envelope = Envelope.FromString(row.state)
    if cipher is None or row.topic == ERASED or not envelope.body:
        return row
    return replace(row, state=encrypted_state(envelope, cipher, row.originator_version))


def encrypted_state(envelope: Envelope, cipher: SessionCipher, version: int) -> bytes:
    """Return the state of a row with its body encrypted."""
    if version == 1:
        envelope.lineage.extend(lineage_of(envelope))
    envelope.encrypted_body = cipher.encrypt(BODY, version, envelope.body)
    envelope.ClearField("body")
    return envelope.SerializeToString()


def lineage_of(first: Envelope) -> Iterator[Any]:
    """Yield the ancestors that a session's first row names, without their names."""
    if first.lineage:
        return
    for segment in StoredFact.FromString(first.body).origin.segments:
        segment.ClearField("session_id")
        yield segment
