"""Domain events to stored rows and back: the package's mapper, without its transcoder."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from eventsourcing.domain import DomainEventProtocol
from eventsourcing.persistence import JSONTranscoder, Mapper, StoredEvent

from foldlog.application import domain
from foldlog.application.domain import TOPICS, Session
from foldlog.application.identity import DEFAULT_TENANT, key_of
from foldlog.compression import Packer, is_packed, plain, unpacked
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.rows import SessionStoredEvent, row_id


class SessionMapper(Mapper[UUID]):
    """Maps a row's state straight from and to its envelope."""

    def __init__(self) -> None:
        super().__init__(transcoder=JSONTranscoder())

    def to_stored_event(self, domain_event: DomainEventProtocol[UUID]) -> SessionStoredEvent:
        """Return the row of a domain event of the default tenant."""
        return stored_row(domain_event, DEFAULT_TENANT)

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        """Return the domain event of a row. Raises DecodeError or PackedError."""
        return domain_event(stored_event)


def stored_row(event: Any, tenant: str, pack: Packer = plain) -> SessionStoredEvent:
    """Return the row of a domain event. Bodies of events are packed; facts are few and small."""
    envelope = event.envelope
    if pack is not plain and type(event) is Session.Event:
        envelope = Envelope()
        envelope.CopyFrom(event.envelope)  # the event's own is read on
        envelope.body = pack(envelope.body)
    return SessionStoredEvent(
        originator_id=event.originator_id,
        originator_version=event.originator_version,
        topic=event.TOPIC,
        state=envelope.SerializeToString(),
        tenant=tenant,
        request_key=key_of(envelope) or None,
    )


def domain_event(row: StoredEvent, envelope: Envelope | None = None) -> Session.Event:
    """Return the domain event of a row, given its envelope if that is decoded already.

    A topic of a newer release becomes a fact that changes nothing.
    """
    if envelope is None:
        envelope = Envelope.FromString(row.state)
        if is_packed(envelope.body):
            envelope.body = unpacked(envelope.body)
    kind = TOPICS.get(row.topic, Session.Fact)
    stamp = datetime.fromtimestamp(envelope.written_ns // 1_000_000_000, UTC)
    return domain.domain_event(kind, row_id(row), row.originator_version, stamp, envelope)
