"""What recovery answers, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foldlog.client.values import FoldedMessage
from foldlog.codec import datetime_of, header_from_proto, time_from_proto
from foldlog.core.header import Header
from foldlog.core.recovery import CallRisk, OwedCall
from foldlog.v1 import service_pb2


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What a crash left open: turns, the innermost first, a step, and calls without a result."""

    interrupted: bool
    open_turn_seqs: tuple[int, ...]
    open_step_seq: int | None
    owed_calls: tuple[OwedCall, ...]
    next_seq: int
    writer_epoch: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """A session that was taken over: all that a new worker needs.

    `plan` is what was open before, `closing_seqs` are the events that closed it.
    """

    writer_epoch: int
    next_seq: int
    plan: RecoveryPlan
    closing_seqs: tuple[int, ...]
    header: Header | None
    messages: tuple[FoldedMessage, ...]


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call that was dispatched, and of which nothing more is known."""

    session_id: str
    seq: int
    call_id: str
    name: str
    idempotency_key: str
    time_ns: int

    @property
    def time(self) -> datetime:
        """When it was dispatched, in UTC, cut to whole microseconds."""
        return datetime_of(self.time_ns)


@dataclass(frozen=True, slots=True)
class SuggestedRange:
    """A range that can be replaced: by entries, by positions, and how many messages it covers."""

    first_seq: int
    last_seq: int
    start: int
    stop: int
    count: int


def plan_from_proto(pb: service_pb2.PlanRecoveryResponse) -> RecoveryPlan:
    """Return the plan."""
    return RecoveryPlan(
        pb.interrupted,
        tuple(pb.open_turn_seqs),
        pb.open_step_seq if pb.HasField("open_step_seq") else None,
        tuple(_owed_from_proto(call) for call in pb.owed_calls),
        pb.next_seq,
        pb.writer_epoch,
    )


def _owed_from_proto(pb: service_pb2.OwedCall) -> OwedCall:
    try:
        risk = CallRisk(pb.risk)
    except ValueError:  # of a newer release: nothing is known
        risk = CallRisk.OUTCOME_UNKNOWN
    return OwedCall(
        pb.call_id,
        pb.name if pb.HasField("name") else None,
        pb.seq,
        risk,
        pb.idempotency_key if pb.HasField("idempotency_key") else None,
    )


def recovery_from_proto(
    pb: service_pb2.RecoverSessionResponse, messages: list[FoldedMessage]
) -> Recovery:
    """Return the recovery, with the messages read after it."""
    return Recovery(
        pb.writer_epoch,
        pb.next_seq,
        plan_from_proto(pb.plan),
        tuple(pb.closing_seqs),
        header_from_proto(pb.header) if pb.HasField("header") else None,
        tuple(messages),
    )


def unresolved_from_proto(pb: service_pb2.UnresolvedCall) -> UnresolvedCall:
    """Return the call."""
    return UnresolvedCall(
        pb.session_id, pb.seq, pb.call_id, pb.name, pb.idempotency_key, time_from_proto(pb.time)
    )


def suggested_from_proto(pb: service_pb2.SuggestRangeResponse) -> SuggestedRange | None:
    """Return the range, None if there is none."""
    if not pb.found:
        return None
    return SuggestedRange(
        pb.entries.first_seq,
        pb.entries.last_seq,
        pb.positions.start,
        pb.positions.stop,
        pb.count,
    )
