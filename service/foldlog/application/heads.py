"""Heads as the stored rows have them, signed so that they can be kept elsewhere."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog.application.domain import Session
from foldlog.application.identity import aggregate_id
from foldlog.application.lane import Services
from foldlog.application.lanes import Lanes
from foldlog.application.watching import place_of
from foldlog.core.anchor import Anchor
from foldlog.core.errors import (
    EventCorruptError,
    InvalidFieldError,
    SessionNotFoundError,
    SigningKeyMissingError,
)
from foldlog.core.validation import validate_session_id
from foldlog.internal.v1.storage_pb2 import StoredFact

PAGE = 100
UNSIGNED = b""


class Signer(Protocol):
    """What signs heads: a key that is not in the database."""

    key_id: bytes
    public_key: bytes

    def sign(self, data: bytes) -> bytes:
        """Return the Ed25519 signature of some bytes."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head, or why a session's newest row has none."""

    anchor: Anchor
    damage: str = ""


class Heads:
    """Reads and signs heads of a tenant's sessions. No cache and no checkpoint is asked."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        signer: Signer | None,
        id_bytes: int,
        tenant: str,
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._signer = signer
        self._id_bytes = id_bytes
        self._tenant = tenant

    @property
    def signer(self) -> Signer:
        """What signs. Raises SigningKeyMissingError."""
        if self._signer is None:
            raise SigningKeyMissingError
        return self._signer

    async def read(
        self, session_id: str, after_cursor: str, sign: bool
    ) -> AsyncIterator[list[Head]]:
        """Yield the head of a session, or pages of those of all with rows behind a cursor."""
        signer = self.signer if sign else None
        if session_id:
            validate_session_id(session_id, self._id_bytes)
            if after_cursor:
                raise InvalidFieldError.of("after_cursor", "session_id excludes it")
            if not await self._lanes.show(self._tenant, session_id):
                raise SessionNotFoundError(session_id=session_id)
            yield await self._services.readers.run(self._of_session, session_id, signer)
            return
        run, recorder = self._services.readers.run, self._services.store.recorder
        after = place_of(after_cursor)
        # What is written from now on is for the next call, so that this one comes to an end.
        newest: int | None = await run(recorder.max_notification_id)
        stop = newest or 0
        while rows := await run(recorder.select_heads, self._tenant, after, stop, PAGE):
            heads = await run(self._page, rows, signer)
            yield [head for head in heads if await self._shows(head)]
            after = rows[-1][0]

    async def _shows(self, head: Head) -> bool:
        return await self._lanes.show(self._tenant, head.anchor.session_id)

    def _of_session(self, session_id: str, signer: Signer | None) -> list[Head]:
        id_ = aggregate_id(self._tenant, session_id)
        version = self._services.store.recorder.last_version(id_)
        if version is None:
            raise SessionNotFoundError(session_id=session_id)
        return [self._head(id_, version, "", signer)]

    def _page(self, rows: list[tuple[int, UUID, int]], signer: Signer | None) -> list[Head]:
        return [self._head(id_, version, str(place), signer) for place, id_, version in rows]

    def _head(self, id_: UUID, version: int, cursor: str, signer: Signer | None) -> Head:
        key_id = UNSIGNED if signer is None else signer.key_id
        anchor = Anchor(self._tenant, str(id_), version, 0, b"", _now(), key_id, cursor=cursor)
        try:
            session_id, _ = self._services.history.reader.origin(id_)
            anchor = replace(anchor, session_id=session_id)
            anchor = self._read(anchor, id_)
        except (EventCorruptError, DecodeError) as error:
            damage = error.damage if isinstance(error, EventCorruptError) else "it does not decode"
            return Head(replace(anchor, key_id=UNSIGNED), damage)
        if signer is not None:
            anchor = replace(anchor, signature=signer.sign(anchor.signed_bytes()))
        return Head(anchor)

    def _read(self, anchor: Anchor, id_: UUID) -> Anchor:
        """Return an anchor with what the row of its version says."""
        reader = self._services.history.reader
        (row,) = reader.some(id_, [anchor.version])
        next_seq = row.envelope.seq + row.is_event
        if row.topic == Session.Forked.TOPIC:
            next_seq = StoredFact.FromString(row.envelope.body).fact.forked.at_seq + 1
        return replace(anchor, next_seq=next_seq, chain=row.envelope.chain)


def _now() -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"
