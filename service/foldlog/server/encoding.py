"""Values of the application as the wire's messages, bodies passed through as bytes."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from foldlog.application.checking import Judgement
from foldlog.application.decisions import Appended, Cut
from foldlog.application.domain import Session as Head
from foldlog.application.reading import Stored
from foldlog.application.verdict import Verdict
from foldlog.codec import violation_to_proto
from foldlog.core.event import SURFACE_TYPES
from foldlog.internal.v1.raw_pb2 import RawEvent
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.index import IndexRow
from foldlog.v1 import check_pb2, event_pb2, service_pb2, session_pb2

KNOWN_TYPES = frozenset(event_pb2.EventType.values())


def time_of_ns(nanoseconds: int) -> Timestamp:
    """Return a time given in nanoseconds since 1970."""
    seconds, nanos = divmod(nanoseconds, 1_000_000_000)
    return Timestamp(seconds=seconds, nanos=nanos)


def session(head: Head) -> session_pb2.Session:
    """Return a head as the session callers see."""
    found = session_pb2.Session(
        session_id=head.session_id,
        next_seq=head.next_seq,
        labels=head.labels,
        metadata_json=head.metadata_json,
        create_time=time_of_ns(head.created_ns),
        update_time=time_of_ns(head.updated_ns),
        writer_epoch=head.epoch,
        open_turn_seq=head.turns.open_turn_seq,
        whole_from_seq=head.whole_from_seq,
    )
    if head.parent is not None:
        found.parent.session_id, found.parent.at_seq = head.parent
    return found


def listed(row: IndexRow) -> session_pb2.Session:
    """Return an entry of the index as callers see it; epoch and open turn are not in it."""
    found = session_pb2.Session(
        session_id=row.session_id,
        next_seq=row.next_seq,
        labels=row.labels,
        metadata_json=row.metadata_json,
        create_time=Timestamp(seconds=row.create_time.s, nanos=row.create_time.ns),
        update_time=Timestamp(seconds=row.update_time.s, nanos=row.update_time.ns),
    )
    if row.parent_session_id is not None:
        found.parent.session_id = row.parent_session_id
        found.parent.at_seq = row.parent_at_seq if row.parent_at_seq is not None else -1
    return found


def cut(found: Cut) -> session_pb2.CutState:
    """Return what is open at a cut."""
    return session_pb2.CutState(
        open_turn_seq=found.open_turn_seq, unanswered_call_ids=found.unanswered_call_ids
    )


def appended(answer: Appended) -> service_pb2.AppendEventsResponse:
    """Return the answer to a batch."""
    return service_pb2.AppendEventsResponse(
        first_seq=answer.first_seq,
        next_seq=answer.next_seq,
        replaces=[
            service_pb2.ReplaceResult(
                index=each.index,
                seq=each.seq,
                position=each.position,
                shadowed_seqs=each.shadowed_seqs,
                orphaned_result_ids=each.orphaned_result_ids,
                unanswered_call_ids=each.unanswered_call_ids,
            )
            for each in answer.replaces
        ],
    )


def event(envelope: Envelope) -> RawEvent:
    """Return a stored event; its body as it was written."""
    type_ = envelope.type if envelope.type in KNOWN_TYPES else 0
    found = RawEvent(
        seq=envelope.seq,
        type=type_,  # type: ignore[arg-type]
        request_id=envelope.request_id or envelope.noted_request_id,
        dropped=envelope.dropped,
        chain=envelope.chain,
    )
    found.time.seconds, found.time.nanos = envelope.time_s, envelope.time_ns
    if not envelope.dropped:
        found.body = envelope.body
    if envelope.type in SURFACE_TYPES:
        found.position = envelope.seq
    if envelope.HasField("replace"):
        found.position = envelope.replace.start
        found.replace.CopyFrom(envelope.replace)
    if envelope.request_id:
        found.request_digest, found.request_row_count = envelope.request_digest, envelope.row_count
    if envelope.HasField("request_mark"):
        found.request_next_seq = envelope.request_mark.next_seq
    return found


def marked(stored: Stored) -> RawEvent:
    """Return a stored event with its state."""
    found = event(stored.envelope)
    if stored.undone_by is not None:
        found.state, found.state_seq = event_pb2.EVENT_STATE_UNDONE, stored.undone_by
    elif stored.shadowed_by is not None:
        found.state, found.state_seq = event_pb2.EVENT_STATE_SHADOWED, stored.shadowed_by
    else:
        found.state = event_pb2.EVENT_STATE_LIVE
    return found


def digest(found: tuple[int, bytes, bool]) -> check_pb2.PrefixDigest:
    """Return a prefix digest."""
    count, value, leading_system = found
    return check_pb2.PrefixDigest(count=count, digest=value, leading_system=leading_system)


def judged(found: Judgement) -> service_pb2.CheckRequestResponse:
    """Return what a check found."""
    answer = service_pb2.CheckRequestResponse(
        checked=found.checked,
        need_full_list=found.need_full_list,
        next_seq=found.next_seq,
        digest=digest(found.digest),
    )
    if found.violation is not None:
        answer.violation.CopyFrom(violation_to_proto(found.violation))
    return answer


def audited(verdict: Verdict) -> service_pb2.VerifySessionResponse:
    """Return what an audit found."""
    return service_pb2.VerifySessionResponse(
        intact=not verdict.faults,
        row_count=verdict.row_count,
        chain=verdict.chain,
        faults=[
            service_pb2.ChainFault(
                session_id=f.session_id, seq=f.seq, description=f.description, part=f.part
            )
            for f in verdict.faults
        ],
        next_seq=verdict.next_seq,
        version=verdict.version,
        chains=[
            service_pb2.VersionChain(version=v, chain=c) for v, c in sorted(verdict.chains.items())
        ],
        deleted=verdict.is_deleted,
    )


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def repeated(field: int, encoded: Sequence[bytes]) -> bytes:
    """Return the wire form of a repeated message field whose elements are encoded already."""
    tag = _varint(field << 3 | 2)
    return b"".join(part for each in encoded for part in (tag, _varint(len(each)), each))


def nested(field: int, encoded: bytes) -> bytes:
    """Return the wire form of a message field that is encoded already."""
    return repeated(field, [encoded])
