"""Recovery: what a crash left open, and taking a session over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never
from uuid import UUID

from foldlog.application import decisions
from foldlog.application.decisions import Call
from foldlog.application.domain import Answered, RowSpec, Segment, Session, build
from foldlog.application.fold import EventRef, Live, Passed, RowRef, holds
from foldlog.application.history import spans_of
from foldlog.application.incoming import TYPE_OF_KIND, require_size
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.readers import EVENT_BYTES
from foldlog.application.reading import Reading
from foldlog.application.rows import live_of
from foldlog.application.writing import Writing
from foldlog.codec import message_from_proto
from foldlog.core.errors import StaleWriterError
from foldlog.core.event import EventType, phase_of
from foldlog.core.recovery import (
    INTERRUPTED,
    RESULT_TEXTS,
    RISK_NAMES,
    Closer,
    OpenStep,
    OpenTurn,
    OwedCall,
    Plan,
    Trace,
    interrupted_from,
    plan_recovery,
)
from foldlog.internal.v1.storage_pb2 import Envelope, RecoveryAnswer, StoredFact
from foldlog.settings import Limits
from foldlog.v1 import event_pb2 as pb
from foldlog.v1 import message_pb2
from foldlog.v1.service_pb2 import OwedCall as OwedCallProto
from foldlog.v1.service_pb2 import PlanRecoveryResponse

STRUCTURE = frozenset(
    {EventType.TURN_START, EventType.TURN_END, EventType.STEP_START, EventType.STEP_END}
)
TRACED = STRUCTURE | {EventType.ASSISTANT_MESSAGE, EventType.TOOL_RESULT, EventType.TOOL_CALL}


@dataclass(frozen=True, slots=True)
class Survey:
    """A session as planning finds it, all of one moment.

    `time` is that of the newest active event, `from_seq` where what is open began.
    """

    plan: Plan
    version: int
    next_seq: int
    epoch: int
    time: tuple[int, int] | None
    header: EventRef | None

    @property
    def weight_bytes(self) -> int:
        """What telling of it, or acting on it, weighs."""
        return len(self.plan.owed) * EVENT_BYTES

    def answer(self) -> PlanRecoveryResponse:
        """Return the plan as callers see it."""
        return PlanRecoveryResponse(
            interrupted=self.plan.is_interrupted,
            open_turn_seqs=self.plan.open_turn_seqs,
            open_step_seq=self.plan.open_step_seq,
            owed_calls=[_owed_to_proto(call) for call in self.plan.owed],
            next_seq=self.next_seq,
            writer_epoch=self.epoch,
        )


@dataclass(frozen=True, slots=True)
class Recovered:
    """A session that was taken over: its epoch, and what was open before."""

    writer_epoch: int
    next_seq: int
    plan: PlanRecoveryResponse
    closing_seqs: tuple[int, ...]
    header: EventRef | None


class Recovery:
    """Plans and recovers."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        reading: Reading,
        writing: Writing,
        limits: Limits,
        tenant: str,
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._reading = reading
        self._writing = writing
        self._limits = limits
        self._tenant = tenant

    async def plan(self, session_id: str) -> PlanRecoveryResponse:
        """Say what is open. Changes nothing."""
        async with self._lanes.use(self._tenant, session_id) as lane:
            survey = await self._survey(lane, session_id)
            return await self._services.workers.run(survey.weight_bytes, survey.answer)

    async def recover(
        self,
        session_id: str,
        request_id: str,
        expected_epoch: int | None,
        owner: str,
        close_open_turns: bool,
    ) -> Recovered:
        """Begin a writer epoch and, if asked, close what is open, all in one batch."""
        request = self._writing.request(
            request_id,
            b"recover",
            str(expected_epoch).encode(),
            owner.encode(),
            bytes([close_open_turns]),
        )
        require_size("owner", len(owner.encode()), self._limits.label_bytes)

        async def prepare(lane: Lane) -> Survey:
            while True:
                survey = await self._survey(lane, session_id)
                write.weight_bytes = survey.weight_bytes
                if survey.version == lane.head.version:  # else it moved while rows were read
                    return survey

        def decide(head: Session, survey: Survey) -> Decided:
            call = self._writing.call(request)
            decisions.require_session(head, session_id)
            return recover(head, call, expected_epoch, owner, survey, close_open_turns)

        write = Write(request, decide, self._replay, prepare)
        answer: Recovered = await self._writing.write(session_id, write)
        return answer

    async def _replay(self, lane: Lane, answered: Answered) -> Recovered:
        fact, *closing = await self._writing.answered_rows(lane, answered)
        stored = StoredFact.FromString(fact.envelope.body)
        first = stored.recovery
        return Recovered(
            stored.fact.writer_opened.epoch,
            fact.envelope.seq + len(closing),
            PlanRecoveryResponse.FromString(first.plan),
            tuple(row.envelope.seq for row in closing),
            _header_from(first),
        )

    async def _survey(self, lane: Lane, session_id: str) -> Survey:
        decisions.require_session(await lane.refresh(), session_id)
        fold = await lane.current_fold(lane.head.next_seq)
        # Nothing is awaited here: head and fold are of one moment.
        head = lane.head
        version, next_seq, epoch, header = head.version, fold.next_seq, head.epoch, fold.header
        from_seq = interrupted_from(fold.turns)
        if from_seq is None:
            return Survey(Plan(), version, next_seq, epoch, None, header)
        spans, active = spans_of(head), fold.active_ranges()
        entries = tuple(fold.surface)
        plan, time = await self._services.readers.run(self._plan, spans, from_seq, active, entries)
        return Survey(plan, version, next_seq, epoch, time, header)

    def _plan(
        self,
        spans: Sequence[Segment],
        from_seq: int,
        active: Sequence[tuple[int, int]],
        entries: Sequence[Live],
    ) -> tuple[Plan, tuple[int, int]]:
        """Return what is open from a seq on, and the time of the last active event. Blocking."""
        traces, time = self._traces(spans, from_seq, active)
        return plan_recovery(from_seq, since(entries, from_seq), traces), time

    def _traces(
        self, spans: Sequence[Segment], from_seq: int, active: Sequence[tuple[int, int]]
    ) -> tuple[list[Trace], tuple[int, int]]:
        """Return the active events from a seq on, and the time of the last. Blocking."""
        traces, time = [], (0, 0)
        for envelope in self._reading.walk_from(spans, from_seq):
            if holds(active, envelope.seq):
                time = envelope.time_s, envelope.time_ns
                if envelope.type in TRACED:
                    traces.append(trace_of(envelope))
        return traces, time


def since(entries: Sequence[Live], from_seq: int) -> tuple[Live, ...]:
    """Return the end of a surface from the first entry written at or after a seq."""
    first = next((i for i, entry in enumerate(entries) if entry.seq >= from_seq), len(entries))
    return tuple(entries[first:])


def trace_of(envelope: Envelope) -> Trace:
    """Return what planning needs of a stored event. A dropped one names no call."""
    body = pb.EventBody.FromString(envelope.body)
    trace = Trace(envelope.seq, envelope.type)
    match body.WhichOneof("kind"):
        case "message" if envelope.type == EventType.ASSISTANT_MESSAGE:
            return replace(trace, calls=message_from_proto(body.message).tool_calls)
        case "message" if body.message.HasField("tool_call_id"):
            return replace(trace, call_id=body.message.tool_call_id)
        case "tool_call":
            return _trace_of_call(trace, body.tool_call)
        case "turn_start" | "turn_end" | "step_start" | "step_end" as kind:
            stated = getattr(body, kind)
            return replace(trace, number=stated.number if stated.HasField("number") else None)
    return trace


def _trace_of_call(trace: Trace, state: pb.ToolCallState) -> Trace:
    return replace(
        trace,
        call_id=state.id if state.HasField("id") else None,
        phase=phase_of(state.phase),
        idempotency_key=state.idempotency_key if state.HasField("idempotency_key") else None,
    )


def recover(
    head: Session,
    call: Call,
    expected_epoch: int | None,
    owner: str,
    survey: Survey,
    close_open_turns: bool,
) -> Decided:
    """Begin a writer epoch and close what is open, as it was surveyed at this head."""
    if expected_epoch is not None and expected_epoch != head.epoch:
        raise StaleWriterError(writer_epoch=expected_epoch, current_epoch=head.epoch)
    epoch, first_seq = head.last_epoch + 1, head.next_seq
    plan = survey.answer()
    bodies = [body_of(closer) for closer in survey.plan.closers] if close_open_turns else []
    fact = StoredFact(fact=pb.Fact(writer_opened=pb.WriterOpenedFact(epoch=epoch, owner=owner)))
    fact.recovery.CopyFrom(_answer_to(plan, survey.header))
    specs = [RowSpec(Session.WriterOpened, fact.SerializeToString(deterministic=True))]
    specs += [_spec(body, survey.time) for body in bodies]
    events = build(head, specs, call.now_ns, call.request)
    passed = [
        _passed(body, spec.type, RowRef(head.id, event.originator_version), event.envelope.seq)
        for body, spec, event in zip(bodies, specs[1:], events[1:], strict=True)
    ]
    closing = tuple(range(first_seq, first_seq + len(bodies)))
    answer = Recovered(epoch, first_seq + len(bodies), plan, closing, survey.header)
    return Decided(answer, events, passed)


def body_of(closer: Closer) -> pb.EventBody:
    """Return the event that closes something, marked as synthetic."""
    match closer:
        case OwedCall():
            return pb.EventBody(message=_result_of(closer))
        case OpenStep(_, number):
            step_end = pb.StepEnd(number=number, reason=INTERRUPTED)
            return pb.EventBody(step_end=step_end, extra_json=_json(synthetic=True))
        case OpenTurn(_, number, step_count):
            turn_end = pb.TurnEnd(number=number, reason=INTERRUPTED)
            marker = _json(synthetic=True, steps=step_count)
            return pb.EventBody(turn_end=turn_end, extra_json=marker)
    assert_never(closer)


def _result_of(call: OwedCall) -> message_pb2.Message:
    return message_pb2.Message(
        role=message_pb2.ROLE_TOOL,
        text=RESULT_TEXTS[call.risk],
        tool_call_id=call.call_id,
        name=call.name,
        metadata_json=_json(synthetic=True, risk=RISK_NAMES[call.risk]),
    )


def _json(**fields: object) -> str:
    return json.dumps(fields, separators=(",", ":"))


def _spec(body: pb.EventBody, time: tuple[int, int] | None) -> RowSpec:
    """Return the row of a closing event; its time is that of the last sign of life."""
    encoded = body.SerializeToString(deterministic=True)
    type_ = TYPE_OF_KIND.get(body.WhichOneof("kind") or "", EventType.TOOL_RESULT)
    return RowSpec(Session.Event, encoded, type_, time=time)


def _passed(body: pb.EventBody, type_: int, row: RowRef, seq: int) -> Passed:
    live = None
    if body.HasField("message"):
        live = live_of(body.message, seq, seq, row)
    return Passed(seq, type_, row, live)


def _answer_to(plan: PlanRecoveryResponse, header: EventRef | None) -> RecoveryAnswer:
    answer = RecoveryAnswer(plan=plan.SerializeToString(deterministic=True))
    if header is not None:
        answer.header_aggregate_id = header.row.aggregate_id.bytes
        answer.header_version, answer.header_seq = header.row.version, header.seq
    return answer


def _header_from(answer: RecoveryAnswer) -> EventRef | None:
    if not answer.header_aggregate_id:
        return None
    row = RowRef(UUID(bytes=answer.header_aggregate_id), answer.header_version)
    return EventRef(answer.header_seq, row)


def _owed_to_proto(call: OwedCall) -> OwedCallProto:
    return OwedCallProto(
        call_id=call.call_id,
        name=call.name,
        seq=call.seq,
        risk=int(call.risk),  # type: ignore[arg-type]
        idempotency_key=call.idempotency_key,
    )
