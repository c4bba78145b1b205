"""The projection that keeps the session index: many rows of the feed, one change per session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from eventsourcing.persistence import DataError, Notification, Tracking
from eventsourcing.projection import Projection
from google.protobuf.message import DecodeError

from foldlog import observability
from foldlog.application.domain import Session
from foldlog.compression import PackedError, is_packed, unpacked
from foldlog.core.event import EventType, phase_of
from foldlog.core.ledger import Line, LineKind
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.persistence.index import (
    INDEX_NAME,
    Ancestor,
    IndexChange,
    Instant,
    SessionCreated,
    SessionIndex,
)
from foldlog.persistence.ledger import LoggedCall
from foldlog.persistence.rows import SessionNotification, row_tenant
from foldlog.v1.event_pb2 import EventBody, ToolCallState

# What damaged values come to that decode and are stored, and that no table of the index takes.
UNFIT = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, DataError)
BEARING = frozenset({EventType.TOOL_CALL, EventType.TOOL_RESULT, EventType.REWIND})
TELLING = BEARING | {EventType.CUSTOM}
EVENT = Session.Event.TOPIC


class IndexProjection(Projection[SessionIndex]):
    """Moves the index along the feed, exactly once."""

    name = INDEX_NAME

    def process_event(self, domain_event: Session.Event, tracking: Tracking) -> None:
        """Apply one domain event of the default tenant."""
        change = change_of(
            domain_event.originator_id, "default", domain_event.TOPIC, domain_event.envelope
        )
        self.view.apply([change], tracking)

    def process(self, notifications: Sequence[Notification], after_id: int) -> None:
        """Apply the stretch of the feed after a place, which is to be where the index is.

        In one transaction; row by row if one cannot be applied. Raises IntegrityError if the index
        is somewhere else: another was faster.
        """
        try:
            self._apply(notifications, after_id)
        except UNFIT:
            for each in notifications:
                self._apply_alone(each, after_id)
                after_id = each.id

    def _apply(self, notifications: Sequence[Notification], after_id: int) -> None:
        tracking = Tracking(INDEX_NAME, notifications[-1].id)
        self.view.apply(list(coalesced(notifications)), tracking, after_id)

    def _apply_alone(self, notification: Notification, after_id: int) -> None:
        """Apply one row, or pass it over: one session's damage keeps no other from its listing."""
        try:
            self._apply([notification], after_id)
        except UNFIT as error:
            place = notification.id
            observability.log("index.row_unfit", level="error", notification_id=place, error=error)
            self.view.apply([], Tracking(INDEX_NAME, place), after_id)


def coalesced(notifications: Iterable[Notification]) -> Iterable[IndexChange]:
    """Return one change per session."""
    changes: dict[UUID, IndexChange] = {}
    for each in notifications:
        assert isinstance(each.originator_id, UUID)
        known = changes.get(each.originator_id)
        try:
            envelope = Envelope.FromString(each.state)
            if known is not None and each.topic == EVENT and envelope.type not in TELLING:
                change = moved_on(known, envelope, len(each.state))
            else:
                tenant = each.tenant if isinstance(each, SessionNotification) else row_tenant(each)
                if is_packed(envelope.body):
                    envelope.body = unpacked(envelope.body)
                change = change_of(each.originator_id, tenant, each.topic, envelope)
                change = change._replace(size_bytes=len(each.state))
                change = change if known is None else merged(known, change)
        except (DecodeError, PackedError):
            # A damaged row fails the reads of its session; other sessions' listing goes on.
            observability.log("index.row_damaged", level="error", notification_id=each.id)
            continue
        changes[each.originator_id] = change
    return changes.values()


def moved_on(known: IndexChange, envelope: Envelope, size_bytes: int) -> IndexChange:
    """Return what a change and an event after it come to that tells nothing but its place."""
    written = Instant(*divmod(envelope.written_ns, 1_000_000_000))
    return known._replace(
        next_seq=envelope.seq + 1, update_time=written, size_bytes=known.size_bytes + size_bytes
    )


def merged(first: IndexChange, second: IndexChange) -> IndexChange:
    """Return the change that two changes of one session come to."""
    return second._replace(
        created=first.created or second.created,
        labels=second.labels if second.labels is not None else first.labels,
        metadata_json=(
            second.metadata_json if second.metadata_json is not None else first.metadata_json
        ),
        custom=first.custom + tuple(pair for pair in second.custom if pair not in first.custom),
        calls=first.calls + second.calls,
        deleted=first.deleted or second.deleted,
        erasing=first.erasing or second.erasing,
        size_bytes=first.size_bytes + second.size_bytes,
    )


def change_of(aggregate_id: UUID, tenant: str, topic: str, envelope: Envelope) -> IndexChange:
    """Return what a row changes in its session's entry."""
    written = Instant(*divmod(envelope.written_ns, 1_000_000_000))
    if topic == EVENT:
        return IndexChange(
            aggregate_id,
            tenant,
            next_seq=envelope.seq + 1,
            update_time=written,
            custom=_custom(envelope),
            calls=logged_calls(envelope),
        )
    change = IndexChange(aggregate_id, tenant, next_seq=envelope.seq, update_time=written)
    stored = StoredFact.FromString(envelope.body)
    match stored.fact.WhichOneof("kind"):
        case "created" | "forked":
            return change._replace(created=_created(stored, written), next_seq=_first_seq(stored))
        case "updated":
            fact = stored.fact.updated
            return change._replace(labels=dict(fact.labels), metadata_json=fact.metadata_json)
        case "deleted":
            return change._replace(deleted=True)
        case "erasure_begun":
            return change._replace(erasing=True)
        case "erased":
            return change._replace(labels={}, metadata_json="")
    return _of_stripped(change, topic, envelope)


def _of_stripped(change: IndexChange, topic: str, envelope: Envelope) -> IndexChange:
    """Return what a fact changes whose body an erasure took: its session was there, and is deleted.

    Whose fork it was is gone.
    """
    if topic == Session.Deleted.TOPIC:
        return change._replace(deleted=True)
    if topic in (Session.Created.TOPIC, Session.Forked.TOPIC) and envelope.session_id:
        created_at = change.update_time or Instant(0)
        ancestors = tuple(
            Ancestor(UUID(bytes=s.aggregate_id), s.to_version) for s in envelope.lineage
        )
        created = SessionCreated(envelope.session_id, created_at, segments=ancestors)
        return change._replace(created=created)
    return change


def _custom(envelope: Envelope) -> tuple[tuple[str, str], ...]:
    if envelope.type != EventType.CUSTOM or envelope.dropped:
        return ()
    custom = EventBody.FromString(envelope.body).custom
    return tuple((custom.kind, key) for key in dict.fromkeys(custom.keys)) or ((custom.kind, ""),)


def logged_calls(envelope: Envelope) -> tuple[LoggedCall, ...]:
    """Return what an event says of dispatched calls: at most one line.

    A phase that is not said is a dispatch; a call without an id can never be resolved, so it is
    left out.
    """
    if envelope.type not in BEARING:
        return ()
    body = EventBody.FromString(envelope.body)
    match envelope.type:
        case EventType.TOOL_CALL if body.tool_call.HasField("id"):
            return (_of_state(envelope, body.tool_call),)
        case EventType.TOOL_RESULT if body.message.HasField("tool_call_id"):
            line = Line(envelope.seq, LineKind.RESOLVED, body.message.tool_call_id)
            return (LoggedCall(line),)
        case EventType.REWIND:
            return (LoggedCall(Line(envelope.seq, LineKind.REWOUND, to_seq=body.rewind.to_seq)),)
    return ()


def _of_state(envelope: Envelope, state: ToolCallState) -> LoggedCall:
    if not phase_of(state.phase).is_dispatch:
        return LoggedCall(Line(envelope.seq, LineKind.RESOLVED, state.id))
    line = Line(envelope.seq, LineKind.DISPATCHED, state.id)
    time = envelope.time_s, envelope.time_ns
    return LoggedCall(line, state.name, state.idempotency_key, time)


def _first_seq(stored: StoredFact) -> int:
    forked = stored.fact.WhichOneof("kind") == "forked"
    return stored.fact.forked.at_seq + 1 if forked else 0


def _created(stored: StoredFact, written: Instant) -> SessionCreated:
    is_fork = stored.fact.WhichOneof("kind") == "forked"
    fact = stored.fact.forked if is_fork else stored.fact.created
    return SessionCreated(
        stored.origin.session_id,
        written,
        stored.fact.forked.parent_session_id if is_fork else None,
        stored.fact.forked.at_seq if is_fork else None,
        dict(fact.labels),
        fact.metadata_json,
        tuple(Ancestor(UUID(bytes=s.aggregate_id), s.to_version) for s in stored.origin.segments),
    )
