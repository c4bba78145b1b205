"""The head that a session's rows come to, made from nothing but them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from eventsourcing.domain import OriginatorVersionError
from eventsourcing.persistence import StoredEvent
from google.protobuf.message import DecodeError

from foldlog.application.checkpoint import head_to
from foldlog.application.domain import Session
from foldlog.application.mapper import domain_event
from foldlog.application.rows import Row
from foldlog.application.verdict import Verdict
from foldlog.internal.v1.storage_pb2 import HeadState


class Replayed:
    """A head, as far as its rows are sound: None behind one that is not.

    `states` has what it was at the versions asked for.
    """

    def __init__(self, aggregate_id: UUID, tenant: str, versions: Iterable[int] = ()) -> None:
        self.states: dict[int, HeadState] = {}
        self._wanted = frozenset(versions)
        self.head: Session | None = Session.blank(aggregate_id, tenant)
        self._next_seq = 0
        self._version = 0
        self._is_deleted = False

    def take(self, row: Row) -> None:
        """Move past the next row."""
        self._version = row.ref.version
        self._next_seq = max(self._next_seq, row.envelope.seq + row.is_event)
        self._is_deleted |= row.topic == Session.Deleted.TOPIC
        if self.head is None or row.damage is not None:
            self.head = None
            return
        stored = StoredEvent(row.ref.aggregate_id, row.ref.version, row.topic, b"")
        try:
            domain_event(stored, row.envelope).mutate(self.head)
        except (DecodeError, OriginatorVersionError, ValueError):
            self.head = None
            return
        if self._version in self._wanted:
            self.states[self._version] = head_to(self.head)

    def tell(self, verdict: Verdict) -> None:
        """Say in a verdict where the session stands."""
        verdict.version, verdict.is_deleted = self._version, self._is_deleted
        verdict.next_seq = self._next_seq if self.head is None else self.head.next_seq
