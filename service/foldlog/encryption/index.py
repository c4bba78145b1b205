"""A session index that encrypts metadata. Ids, labels and times stay in clear for listings."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from eventsourcing.persistence import Tracking

from foldlog.encryption.session_ciphers import SessionCipher, SessionCiphers, framed
from foldlog.persistence.entries import IndexEntry
from foldlog.persistence.errors import KeyDamagedError, MasterKeyMissingError
from foldlog.persistence.index import IndexChange, IndexPage, IndexQuery, IndexRow, SessionIndex
from foldlog.persistence.ledger import CallQuery, UnresolvedCall

METADATA = framed("metadata")
PREFIX = "encrypted:"  # with which no JSON begins


class EncryptedIndex(SessionIndex):
    """Keeps and reads the index through another one."""

    def __init__(self, plain: SessionIndex, ciphers: SessionCiphers) -> None:
        self._plain = plain
        self._ciphers = ciphers

    def apply(
        self, changes: Sequence[IndexChange], tracking: Tracking, after_id: int | None = None
    ) -> None:
        self._ensured(changes)
        self._plain.apply(self._all_encrypted(changes), tracking, after_id)

    def rebuild(self, stretches: Callable[[], Iterable[Sequence[IndexChange]]], place: int) -> None:
        # Before the transaction begins: keys are written apart from it.
        for changes in stretches():
            self._ensured(changes)
        self._plain.rebuild(lambda: map(self._all_encrypted, stretches()), place)

    def _ensured(self, changes: Sequence[IndexChange]) -> None:
        self._ciphers.ensure(
            {each.aggregate_id: each.tenant for each in changes if _metadata(each)}
        )

    def _all_encrypted(self, changes: Sequence[IndexChange]) -> list[IndexChange]:
        return [
            _encrypted(each, self._ciphers.get(each.aggregate_id)) if _metadata(each) else each
            for each in changes
        ]

    def list_sessions(self, query: IndexQuery) -> IndexPage:
        found = self._plain.list_sessions(query)
        self._ciphers.load({row.aggregate_id for row in found.rows if _is_encrypted(row)})
        return IndexPage(tuple(map(self._decrypted, found.rows)), found.next_page_token)

    def find_session(self, aggregate_id: UUID) -> IndexRow | None:
        found = self._plain.find_session(aggregate_id)
        return None if found is None else self._decrypted(found)

    def _decrypted(self, row: IndexRow) -> IndexRow:
        if not _is_encrypted(row):
            return row
        return replace(row, metadata_json=self._clear(row.aggregate_id, row.metadata_json))

    def _clear(self, aggregate_id: UUID, stored: str) -> str:
        """Return stored metadata in clear; none, where the key is missing: reads tell why."""
        if not stored.startswith(PREFIX):
            return stored
        try:
            encrypted = b64decode(stored.removeprefix(PREFIX), validate=True)
            return self._ciphers.get(aggregate_id).decrypt(METADATA, 0, encrypted).decode()
        except (ValueError, KeyDamagedError, MasterKeyMissingError):
            return ""

    def entry(self, aggregate_id: UUID) -> IndexEntry | None:
        found = self._plain.entry(aggregate_id)
        if found is None:
            return None
        clear = self._clear(aggregate_id, str(found.columns["metadata_json"]))
        return replace(found, columns={**found.columns, "metadata_json": clear})

    def forks_reading(self, aggregate_id: UUID) -> list[tuple[UUID, str, int]]:
        return self._plain.forks_reading(aggregate_id)

    def list_unresolved(self, query: CallQuery) -> list[UnresolvedCall]:
        return self._plain.list_unresolved(query)

    def max_tracking_id(self, application_name: str) -> int | None:
        return self._plain.max_tracking_id(application_name)

    def insert_tracking(self, tracking: Tracking) -> None:
        self._plain.insert_tracking(tracking)


def _is_encrypted(row: IndexRow) -> bool:
    return row.metadata_json.startswith(PREFIX)


def _metadata(change: IndexChange) -> bool:
    return bool(change.metadata_json or (change.created and change.created.metadata_json))


def _encrypted(change: IndexChange, cipher: SessionCipher) -> IndexChange:
    def text(metadata_json: str) -> str:
        if not metadata_json:
            return ""
        encrypted = cipher.encrypt(METADATA, 0, metadata_json.encode())
        return PREFIX + b64encode(encrypted).decode()

    if change.created is not None:
        created = replace(change.created, metadata_json=text(change.created.metadata_json))
        change = change._replace(created=created)
    if change.metadata_json is not None:
        change = change._replace(metadata_json=text(change.metadata_json))
    return change
