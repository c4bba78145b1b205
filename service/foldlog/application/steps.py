"""Steps: begun in one batch, and answered with the exact request to send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foldlog.application import decisions
from foldlog.application.asking import Asked, as_events, asked_of, content_of
from foldlog.application.bodies import Bodies, folded
from foldlog.application.decisions import Guard, Placing
from foldlog.application.domain import Answered, RequestKey, RowSpec, Session, build
from foldlog.application.fold import EventRef, Fold, Passed, RowRef
from foldlog.application.headers import Headers, InForce, header_body, owed
from foldlog.application.incoming import Incoming, require_size, weight_of
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.marks import Marks
from foldlog.application.readers import EVENT_BYTES, HEAVY_BYTES
from foldlog.application.reading import Reading
from foldlog.application.requests import Built, Requests, State
from foldlog.application.texts import cut_headers
from foldlog.application.trimming import Ground, ground_of
from foldlog.application.writing import Writing
from foldlog.codec import message_from_proto
from foldlog.core.errors import HeaderMissingError, InvalidFieldError
from foldlog.core.event import SURFACE_TYPES, EventType
from foldlog.core.header import HeaderReason
from foldlog.core.request import RequestHash, encoded_message
from foldlog.internal.v1.raw_pb2 import RawBeginStepRequest
from foldlog.internal.v1.storage_pb2 import Envelope, RequestMark
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import EventBody, RequestHeader


@dataclass(frozen=True, slots=True)
class Begun:
    """A step that began, and its request."""

    step_seq: int
    reason: HeaderReason | None
    built: Built
    extends_previous: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """A step on a head of a version: its rows, and the request they lead to."""

    lane: Lane
    version: int
    specs: list[RowSpec]
    passed: list[Passed]
    reason: HeaderReason | None
    state: State
    hashed: RequestHash
    extends_previous: bool


class Steps:
    """Begins steps."""

    def __init__(
        self,
        services: Services,
        reading: Reading,
        writing: Writing,
        bodies: Bodies,
        headers: Headers,
        requests: Requests,
        limits: Limits,
    ) -> None:
        self._services = services
        self._reading = reading
        self._writing = writing
        self._bodies = bodies
        self._headers = headers
        self._requests = requests
        self._limits = limits
        self._marks = Marks(services, requests)

    async def begin(self, request: RawBeginStepRequest) -> Begun:
        """Append a step_start, what enters with it and a header if owed; return the request."""
        weight = request.ByteSize() + len(request.events) * EVENT_BYTES
        workers = self._services.workers
        asked, key = await workers.run(weight, self._asked, request)
        guard = Guard(
            request.expected_next_seq if request.HasField("expected_next_seq") else None,
            request.writer_epoch if request.HasField("writer_epoch") else None,
        )
        written: list[Envelope] = []
        prepared: list[Prepared] = []

        async def prepare(lane: Lane) -> Prepared:
            decisions.require_session(await lane.refresh(), asked.session_id)
            decisions.require_guard(lane.head, guard)
            return await self._prepared(lane, asked)

        def decide(head: Session, step: Prepared) -> Decided:
            decisions.require_session(head, asked.session_id)
            decisions.require_guard(head, guard)
            assert head.version == step.version, "the head moved while the lane was busy"
            events = build(head, step.specs, self._writing.call(key).now_ns, key)
            written[:] = [event.envelope for event in events]
            prepared[:] = [step]
            return Decided(self._begun(step, written[0].seq), events, step.passed)

        async def replay(lane: Lane, answered: Answered) -> Begun:
            prepared.clear()
            return await self._replayed(lane, answered, asked)

        attached = self._services.objects.preparing(asked.events, prepare)
        write = Write(key, decide, replay, attached, weight)
        begun: Begun = await self._writing.write(asked.session_id, write)
        if prepared:
            await self._remember(prepared[0], written, weight)
        return begun

    def _asked(self, request: RawBeginStepRequest) -> tuple[Asked, RequestKey]:
        asked = asked_of(request, self._headers, self._limits)
        content = content_of(request)
        return asked, self._writing.request(request.request_id, b"begin_step", content)

    async def _prepared(self, lane: Lane, asked: Asked) -> Prepared:
        """Place a step on the lane's head and build its request, while the head stands still."""
        while True:
            in_force = await self._headers.in_force(lane)
            weight = 0 if asked.header is None else asked.header.ByteSize()
            given = lane.head.copy(), in_force, asked
            reason, batch = await self._services.workers.run(weight, self._batch, *given)
            ground = await ground_of(lane, batch)
            if lane.head.version != in_force.version:
                continue  # another process wrote meanwhile
            step = await self._placed(lane, ground, in_force, batch, reason)
            if lane.head.version == step.version:
                return step

    async def _placed(
        self,
        lane: Lane,
        ground: Ground,
        in_force: InForce,
        batch: Sequence[Incoming],
        reason: HeaderReason | None,
    ) -> Prepared:
        head, previous = lane.head.copy(), ground.fold.step
        after = ground.fold.sound().copy()
        is_plain = all(event.replace is None for event in batch)
        weight = weight_of(batch, len(after.surface)) if is_plain else HEAVY_BYTES
        workers = self._services.workers
        placed = await workers.run(weight, _placed, head, ground, after, batch, in_force.header)
        for content in placed.contents:
            await self._services.objects.put_bytes(content)
        state, specs, passed = placed.state, placed.specs, placed.passed
        hashed, extends = await self._hashed(lane, previous, state, placed.new)
        specs[0].envelope.request_mark.CopyFrom(
            RequestMark(
                next_seq=state.next_seq,
                count=hashed.count,
                encoding_sha256=hashed.digest,
                extends_previous=extends,
            )
        )
        version = in_force.version
        return Prepared(lane, version, specs, passed, reason, state, hashed, extends)

    def _batch(
        self, head: Session, in_force: InForce, asked: Asked
    ) -> tuple[HeaderReason | None, list[Incoming]]:
        """Return why a header is owed, and the events of the step, in order."""
        batch = [asked.start, *asked.events]
        reason = None
        if asked.header is not None:
            given = _latest_header(batch)
            if given is None:
                reason = owed(head, in_force.header, asked.header, asked.skip_unchanged)
            else:
                reason = owed(head, given, asked.header, True, epoch_has_header=True)
        if reason is not None and asked.header is not None:
            body = header_body(asked.header, reason)
            batch.append(Incoming(EventType.REQUEST_HEADER, body))
        require_size("events", sum(len(event.body) for event in batch), self._limits.batch_bytes)
        return reason, batch

    async def _hashed(
        self, lane: Lane, previous: EventRef | None, state: State, new: dict[RowRef, bytes]
    ) -> tuple[RequestHash, bool]:
        """Return a request's hash, and whether the request extends the one of the step before."""
        mark = await self._marks.of(lane, previous)
        most = mark.count if mark is not None else None
        hashed = self._requests.hashes.start(lane, state, most)
        extends = False
        if mark is not None and mark.count <= len(state.entries):
            await self._requests.grow(hashed, state.entries[: mark.count], new)
            extends = hashed.digest == mark.encoding_sha256
        await self._requests.grow(hashed, state.entries, new)
        return hashed, extends

    def _begun(self, step: Prepared, step_seq: int) -> Begun:
        built = Built(step.state, step.hashed.digest, self._reading, step_seq)
        return Begun(step_seq, step.reason, built, step.extends_previous)

    async def _remember(self, step: Prepared, written: Sequence[Envelope], weight: int) -> None:
        """Keep what the next step and the answer need, now that the rows are stored."""
        self._marks.keep(step.lane.id, step.passed[0].row, written[0].request_mark)
        self._requests.hashes.keep(step.lane, step.state, step.hashed)
        found = await self._services.workers.run(weight, _bodies_of, step.passed, written)
        for row, encoded in found:
            self._bodies.keep(row, encoded)

    async def _replayed(self, lane: Lane, answered: Answered, asked: Asked) -> Begun:
        """Make the first answer again from what is stored."""
        rows = await self._writing.answered_rows(lane, answered)
        mark, last = rows[0].envelope.request_mark, rows[-1].envelope
        reason = None
        if len(rows) > 1 + len(asked.events):
            header = EventBody.FromString(last.body).request_header
            reason = HeaderReason(header.reason)
        folded_ = await self._reading.fold(asked.session_id, last.seq)
        state = await self._requests.state(folded_.fold, last.seq + 1, asked.session_id)
        seq = rows[0].envelope.seq
        built = Built(state, mark.encoding_sha256, self._reading, seq)
        return Begun(seq, reason, built, mark.extends_previous)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A step's events where they stand, and the state after them.

    `contents` are the texts that its headers lack, `new` what its messages add to the request.
    """

    specs: list[RowSpec]
    passed: list[Passed]
    contents: list[bytes]
    state: State
    new: dict[RowRef, bytes]


def _placed(
    head: Session,
    ground: Ground,
    after: Fold,
    batch: Sequence[Incoming],
    header: RequestHeader | None,
) -> _Placed:
    """Place a step on a head; `after`, the fold at it, takes it in. Nothing given is shared."""
    placing = Placing(head, ground.surface, False, ground.originals)
    cut, contents = cut_headers(batch)
    specs = _placed_rows(placing, cut)
    for passed in placing.passed:
        after.take(passed)
    header = _latest_header(batch) or header
    if after.header is None or header is None:
        raise HeaderMissingError(session_id=head.session_id)
    next_seq = head.next_seq + len(batch)
    state = State(after.header, header, tuple(after.surface), after.digest(), next_seq)
    new = {
        passed.row: _encoded(event)
        for passed, event in zip(placing.passed, batch, strict=True)
        if event.message is not None
    }
    return _Placed(specs, placing.passed, contents, state, new)


def _bodies_of(passed: Sequence[Passed], written: Sequence[Envelope]) -> list[tuple[RowRef, bytes]]:
    """Return the messages of a step as the wire wants them, by their rows."""
    return [
        (each.row, folded(envelope))
        for each, envelope in zip(passed, written, strict=True)
        if envelope.type in SURFACE_TYPES
    ]


def _placed_rows(placing: Placing, batch: Sequence[Incoming]) -> list[RowSpec]:
    try:
        return [placing.place(index, event) for index, event in enumerate(batch)]
    except InvalidFieldError as error:
        raise as_events(error) from None


def _latest_header(batch: Sequence[Incoming]) -> RequestHeader | None:
    for event in reversed(batch):
        if event.type is EventType.REQUEST_HEADER:
            return EventBody.FromString(event.body).request_header
    return None


def _encoded(event: Incoming) -> bytes:
    """Return what a new message adds to a request's encoding."""
    assert event.message is not None
    return encoded_message(message_from_proto(event.message), event.group)
