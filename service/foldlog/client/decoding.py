"""From the wire's answers to the client's values."""

from __future__ import annotations

from foldlog.client.stored import (
    AppliedReplace,
    CaughtUp,
    Created,
    Deleted,
    Event,
    EventState,
    Fact,
    FactKind,
    FeedItem,
    Forked,
    HistoryDropped,
    UnknownFact,
    Updated,
    WatchItem,
    WriterClosed,
    WriterOpened,
)
from foldlog.client.values import (
    Appended,
    AuditedPart,
    ChainFault,
    CutState,
    FoldedMessage,
    ForkPoint,
    ReplaceResult,
    SessionHead,
    SessionInfo,
    Verification,
)
from foldlog.codec import message_from_proto, time_from_proto
from foldlog.core.anchor import Anchor
from foldlog.core.event import EventType
from foldlog.internal.v1 import raw_pb2
from foldlog.v1 import event_pb2, service_pb2, session_pb2

PARTS = {
    service_pb2.AUDITED_PART_LOG: AuditedPart.LOG,
    service_pb2.AUDITED_PART_CHECKPOINT: AuditedPart.CHECKPOINT,
    service_pb2.AUDITED_PART_INDEX: AuditedPart.INDEX,
    service_pb2.AUDITED_PART_ATTACHMENTS: AuditedPart.ATTACHMENTS,
}


def appended_from_proto(pb: service_pb2.AppendEventsResponse, offset: int = 0) -> Appended:
    """Return the answer; its batch began at `offset` in the events of the call."""
    return Appended(
        first_seq=pb.first_seq,
        next_seq=pb.next_seq,
        replaces=tuple(_replace_result(each, offset) for each in pb.replaces),
    )


def _replace_result(pb: service_pb2.ReplaceResult, offset: int) -> ReplaceResult:
    return ReplaceResult(
        index=pb.index + offset,
        seq=pb.seq,
        position=pb.position,
        shadowed_seqs=tuple(pb.shadowed_seqs),
        orphaned_result_ids=tuple(pb.orphaned_result_ids),
        unanswered_call_ids=tuple(pb.unanswered_call_ids),
    )


def folded_from_proto(pb: service_pb2.FoldedMessage) -> FoldedMessage:
    """Return the message and where it stands."""
    return FoldedMessage(
        seq=pb.seq,
        position=pb.position,
        message=message_from_proto(pb.message),
        time_ns=time_from_proto(pb.time),
        group=pb.group if pb.HasField("group") else None,
    )


def info_from_proto(pb: session_pb2.Session) -> SessionInfo:
    """Return the session's state."""
    return SessionInfo(
        session_id=pb.session_id,
        next_seq=pb.next_seq,
        labels=dict(pb.labels),
        metadata_json=pb.metadata_json,
        create_time_ns=time_from_proto(pb.create_time),
        update_time_ns=time_from_proto(pb.update_time),
        parent=fork_point_from_proto(pb.parent) if pb.HasField("parent") else None,
        writer_epoch=pb.writer_epoch,
        open_turn_seq=pb.open_turn_seq if pb.HasField("open_turn_seq") else None,
        whole_from_seq=pb.whole_from_seq,
    )


def fork_point_from_proto(pb: session_pb2.ForkPoint) -> ForkPoint:
    """Return the place."""
    return ForkPoint(pb.session_id, pb.at_seq)


def cut_from_proto(pb: session_pb2.CutState) -> CutState:
    """Return what is open at the cut."""
    return CutState(
        open_turn_seq=pb.open_turn_seq if pb.HasField("open_turn_seq") else None,
        unanswered_call_ids=tuple(pb.unanswered_call_ids),
    )


def verification_from_proto(pb: service_pb2.VerifySessionResponse) -> Verification:
    """Return what the verification found."""
    faults = tuple(
        ChainFault(
            f.session_id,
            f.seq if f.HasField("seq") else None,
            f.description,
            PARTS.get(f.part, AuditedPart.UNKNOWN),
        )
        for f in pb.faults
    )
    chains = {each.version: each.chain for each in pb.chains}
    about = (pb.next_seq, pb.version, chains, pb.deleted)
    return Verification(pb.intact, pb.row_count, pb.chain, faults, *about)


def head_from_proto(pb: service_pb2.SessionHead) -> SessionHead:
    """Return a head."""
    anchor = Anchor(
        pb.tenant,
        pb.session_id,
        pb.version,
        pb.next_seq,
        pb.chain,
        pb.time,
        pb.key_id,
        pb.signature,
        pb.cursor,
    )
    return SessionHead(anchor, pb.damage)


def event_from_proto(pb: raw_pb2.RawEvent) -> Event:
    """Return the event, its body as the bytes that are stored."""
    has = pb.HasField
    return Event(
        seq=pb.seq,
        type=_event_type(pb.type),
        time_ns=time_from_proto(pb.time),
        encoded_body=pb.body if has("body") else None,
        position=pb.position if has("position") else None,
        replace=_applied(pb.replace) if has("replace") else None,
        request_id=pb.request_id,
        state=_event_state(pb.state),
        state_seq=pb.state_seq if has("state_seq") else None,
        dropped=pb.dropped,
        chain=pb.chain,
        request_next_seq=pb.request_next_seq if has("request_next_seq") else None,
    )


def _event_type(number: int) -> int:
    try:
        return EventType(number)
    except ValueError:
        return number


def _event_state(number: int) -> EventState:
    try:
        return EventState(number)
    except ValueError:
        return EventState.UNSPECIFIED


def _applied(pb: event_pb2.AppliedReplace) -> AppliedReplace:
    return AppliedReplace(pb.start, pb.stop, tuple(pb.shadowed_seqs))


def watch_item_from_proto(pb: raw_pb2.RawWatchEventsResponse) -> WatchItem | None:
    """Return the element, or None for a kind of a newer release."""
    match pb.WhichOneof("kind"):
        case "event":
            return event_from_proto(pb.event)
        case "caught_up":
            return CaughtUp(pb.caught_up.next_seq)
        case "history_dropped":
            return _history_dropped(pb.history_dropped)
        case "deleted":
            return Deleted()
        case _:
            return None


def feed_item_from_proto(pb: raw_pb2.RawWatchAllEventsResponse) -> FeedItem | None:
    """Return the element, or None for a kind of a newer release."""
    match pb.WhichOneof("kind"):
        case "event":
            return FeedItem(pb.cursor, pb.session_id, event_from_proto(pb.event))
        case "fact":
            return FeedItem(pb.cursor, pb.session_id, _fact(pb.fact))
        case "caught_up":
            return FeedItem(pb.cursor, pb.session_id, CaughtUp())
        case _:
            return None


def _fact(pb: event_pb2.Fact) -> Fact:
    return Fact(time_from_proto(pb.time), _fact_kind(pb))


def _fact_kind(pb: event_pb2.Fact) -> FactKind:
    match pb.WhichOneof("kind"):
        case "created":
            return Created(dict(pb.created.labels), pb.created.metadata_json)
        case "forked":
            forked = pb.forked
            labels = dict(forked.labels)
            return Forked(forked.parent_session_id, forked.at_seq, labels, forked.metadata_json)
        case "updated":
            return Updated(dict(pb.updated.labels), pb.updated.metadata_json)
        case "writer_opened":
            return WriterOpened(pb.writer_opened.epoch, pb.writer_opened.owner)
        case "writer_closed":
            return WriterClosed(pb.writer_closed.epoch)
        case "history_dropped":
            return _history_dropped(pb.history_dropped)
        case "deleted":
            return Deleted()
        case _:
            return UnknownFact()


def _history_dropped(pb: event_pb2.HistoryDroppedFact) -> HistoryDropped:
    return HistoryDropped(pb.whole_from_seq, tuple((r.first, r.last) for r in pb.dropped))
