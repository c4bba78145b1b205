"""Rotating the master key: data keys are wrapped anew, and nothing that they encrypt changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from foldlog.encryption import objects, session_ciphers
from foldlog.encryption.master_keys import MasterKeys, Wrapped
from foldlog.encryption.opening import key_ids
from foldlog.persistence.data_keys import DataKeyRow
from foldlog.persistence.errors import KeyDamagedError
from foldlog.persistence.object_table import ObjectKey
from foldlog.persistence.store import Store

PAGE = 500
BEFORE_ALL = UUID(int=0)


@dataclass(slots=True)
class Rotated:
    """How many keys of sessions and attachments were wrapped anew, and how many are damaged."""

    sessions: int = 0
    attachments: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class InUse:
    """How many keys a master key wraps."""

    key_id: str
    sessions: int
    attachments: int


def in_use(store: Store) -> list[InUse]:
    """Return what each master key wraps."""
    table = store.objects.table
    return [InUse(each, store.data_keys.count(each), table.count(each)) for each in key_ids(store)]


def rotate(store: Store, masters: MasterKeys, on_progress: Callable[[int], None]) -> Rotated:
    """Wrap every key by the current master key. May be broken off and run again.

    Others may write meanwhile. Raises MasterKeyMissingError.
    """
    rotated = Rotated()
    for key_id in key_ids(store):
        if key_id != masters.current_id:
            for row in _sessions(store, key_id):
                rotated.sessions += _session(store, masters, row, rotated)
                on_progress(1)
            for key in _attachments(store, key_id):
                rotated.attachments += _attachment(store, masters, key, rotated)
                on_progress(1)
    return rotated


def _sessions(store: Store, key_id: str) -> Iterator[DataKeyRow]:
    after = BEFORE_ALL
    while page := store.data_keys.wrapped_by(key_id, after, PAGE):
        yield from page
        after = page[-1].aggregate_id


def _attachments(store: Store, key_id: str) -> Iterator[ObjectKey]:
    after = ("", b"")
    while page := store.objects.table.wrapped_by(key_id, after, PAGE):
        yield from page
        after = page[-1][:2]


def _session(store: Store, masters: MasterKeys, row: DataKeyRow, rotated: Rotated) -> bool:
    context = session_ciphers.context_of(row.tenant, row.aggregate_id)
    wrapped = _wrapped_anew(masters, Wrapped(row.key_id, row.wrapped), context, rotated)
    return wrapped is not None and store.data_keys.replace(row, DataKeyRow(*row[:2], *wrapped))


def _attachment(store: Store, masters: MasterKeys, key: ObjectKey, rotated: Rotated) -> bool:
    context = objects.context_of(key.tenant, key.sha256)
    wrapped = _wrapped_anew(masters, Wrapped(key.key_id, key.wrapped), context, rotated)
    return wrapped is not None and store.objects.table.replace_key(
        key, ObjectKey(*key[:2], *wrapped)
    )


def _wrapped_anew(
    masters: MasterKeys, wrapped: Wrapped, context: bytes, rotated: Rotated
) -> Wrapped | None:
    try:
        return masters.wrap(masters.unwrap(wrapped, context), context)
    except KeyDamagedError:
        rotated.damaged += 1
        return None
