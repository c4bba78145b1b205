"""The decisions of the session aggregate: what a call writes, given the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from foldlog.application.checkpoint import origin_of
from foldlog.application.domain import RequestKey, RowSpec, Segment, Session, build, turns_to
from foldlog.application.fold import Fold, Live, Passed, RowRef
from foldlog.application.incoming import ByEntries, Incoming
from foldlog.application.lane import Decided
from foldlog.application.rows import live_of
from foldlog.codec import message_from_proto
from foldlog.core.errors import (
    InvalidFieldError,
    OpenTurnError,
    SeqBeyondHeadError,
    SeqConflictError,
    SessionDeletedError,
    SessionExistsError,
    SessionNotFoundError,
    StaleWriterError,
    UnbalancedRangeError,
    WriterEpochRequiredError,
)
from foldlog.core.event import EventType, PositionRange
from foldlog.core.mentions import Mentions
from foldlog.core.pairing import unanswered
from foldlog.core.surface import Surface
from foldlog.core.trim import Said, require_trim
from foldlog.core.turns import TurnState
from foldlog.core.validation import validate_replace
from foldlog.internal.v1.storage_pb2 import Envelope, Origin, StoredFact
from foldlog.v1 import event_pb2 as pb

Originals = Mapping[RowRef, Said]


@dataclass(frozen=True, slots=True)
class ReplaceOutcome:
    """What a replace in a batch did."""

    index: int
    seq: int
    position: int
    shadowed_seqs: tuple[int, ...]
    orphaned_result_ids: tuple[str, ...] = ()
    unanswered_call_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a batch went."""

    first_seq: int
    next_seq: int
    replaces: tuple[ReplaceOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """What is open at a cut of the log."""

    open_turn_seq: int | None
    unanswered_call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """What a write demands of the head beforehand."""

    expected_next_seq: int | None = None
    writer_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """What every decision is given: the request, and the time."""

    request: RequestKey
    now_ns: int


def require_session(head: Session, session_id: str) -> None:
    """Raise unless the session exists and is not deleted."""
    if not head.exists:
        raise SessionNotFoundError(session_id=session_id)
    if head.is_deleted:
        raise SessionDeletedError(session_id=session_id)


def require_guard(head: Session, guard: Guard) -> None:
    """Raise unless the writer may write and the head is where it believes."""
    if guard.writer_epoch is None and head.epoch:
        raise WriterEpochRequiredError(current_epoch=head.epoch)
    if guard.writer_epoch is not None and guard.writer_epoch != head.epoch:
        raise StaleWriterError(writer_epoch=guard.writer_epoch, current_epoch=head.epoch)
    if guard.expected_next_seq is not None and guard.expected_next_seq != head.next_seq:
        raise SeqConflictError(expected_next_seq=guard.expected_next_seq, next_seq=head.next_seq)


def require_seq(head: Session, seq: int, field: str) -> None:
    """Raise unless a seq lies in -1 to the newest."""
    if seq < -1:
        raise InvalidFieldError.of(field, f"{seq} is below -1")
    if seq >= head.next_seq:
        raise SeqBeyondHeadError(seq=seq, next_seq=head.next_seq)


def require_closed_turn(turns: TurnState) -> None:
    """Raise OpenTurnError if a turn is open."""
    if turns.open_turn_seq is not None:
        raise OpenTurnError(turn_seq=turns.open_turn_seq)


def cut_of(turns: TurnState, entries: Sequence[Live]) -> Cut:
    """Return what is open at a cut, of its turns and its surface."""
    calls = tuple(call_id for _, call_id in unanswered(entries))
    return Cut(turns.open_turn_seq, calls)


def _fact(kind: type[Session.Event], fact: pb.Fact, origin: Origin | None = None) -> RowSpec:
    return RowSpec(kind, StoredFact(fact=fact, origin=origin).SerializeToString(deterministic=True))


def create(
    head: Session,
    call: Call,
    session_id: str,
    labels: Mapping[str, str],
    metadata_json: str,
    key: bytes,
) -> Decided:
    """Create a session, whose key is given."""
    _require_free(head, session_id)
    fact = pb.Fact(created=pb.CreatedFact(labels=labels, metadata_json=metadata_json))
    head.key = key
    spec = _fact(Session.Created, fact, origin_of(session_id, key, ()))
    return Decided(None, build(head, [spec], call.now_ns, call.request))


def _require_free(head: Session, session_id: str) -> None:
    if head.is_deleted:
        raise SessionDeletedError(session_id=session_id)
    if head.exists:
        raise SessionExistsError(session_id=session_id)


@dataclass(frozen=True, slots=True)
class Origins:
    """What a fork takes from its parent."""

    parent_session_id: str
    at_seq: int
    segments: tuple[Segment, ...]
    chain: bytes
    turns: TurnState
    whole_from_seq: int
    dropped_from_seq: int | None
    drop_versions: tuple[int, ...]
    cut: Cut


def fork(
    head: Session,
    call: Call,
    session_id: str,
    origins: Origins,
    labels: Mapping[str, str],
    metadata_json: str,
    key: bytes,
) -> Decided:
    """Create a session whose log begins with another's."""
    _require_free(head, session_id)
    fact = pb.Fact(
        forked=pb.ForkedFact(
            parent_session_id=origins.parent_session_id,
            at_seq=origins.at_seq,
            labels=labels,
            metadata_json=metadata_json,
        )
    )
    origin = origin_of(session_id, key, origins.segments)
    origin.turns.CopyFrom(turns_to(origins.turns))
    origin.whole_from_seq = origins.whole_from_seq
    origin.unanswered_call_ids.extend(origins.cut.unanswered_call_ids)
    if origins.dropped_from_seq is not None:
        origin.dropped_from_seq = origins.dropped_from_seq
    head.key, head.chain, head.next_seq = key, origins.chain, origins.at_seq + 1
    spec = _fact(Session.Forked, fact, origin)
    return Decided(origins.cut, build(head, [spec], call.now_ns, call.request))


def update(
    head: Session,
    call: Call,
    session_id: str,
    change: Callable[[Mapping[str, str]], Mapping[str, str]],
    metadata_json: str | None,
) -> Decided:
    """Change labels and metadata."""
    require_session(head, session_id)
    fact = pb.UpdatedFact(
        labels=change(head.labels),
        metadata_json=head.metadata_json if metadata_json is None else metadata_json,
    )
    spec = _fact(Session.Updated, pb.Fact(updated=fact))
    return Decided(None, build(head, [spec], call.now_ns, call.request))


def delete(head: Session, call: Call, session_id: str) -> Decided:
    """Delete a session; one that is deleted stays so."""
    if not head.exists:
        raise SessionNotFoundError(session_id=session_id)
    if head.is_deleted:
        return Decided(head.next_seq)
    spec = _fact(Session.Deleted, pb.Fact(deleted=pb.DeletedFact()))
    return Decided(head.next_seq, build(head, [spec], call.now_ns, call.request))


def begin_erasure(head: Session, call: Call, session_id: str, reason: str) -> Decided:
    """Say that a session is being erased; one that is, or was, stays so."""
    if not head.exists:
        raise SessionNotFoundError(session_id=session_id)
    if head.is_erased or head.is_erasing:
        return Decided(None)
    fact = pb.Fact(erasure_begun=pb.ErasureBegunFact(reason=reason))
    spec = _fact(Session.ErasureBegun, fact)
    return Decided(None, build(head, [spec], call.now_ns, call.request))


def withdraw_erasure(head: Session, call: Call) -> Decided:
    """Say that a session is not erased after all."""
    if not head.is_erasing:
        return Decided(None)
    fact = pb.Fact(erasure_withdrawn=pb.ErasureWithdrawnFact())
    spec = _fact(Session.ErasureWithdrawn, fact)
    return Decided(None, build(head, [spec], call.now_ns, call.request))


def erase(head: Session, call: Call, session_id: str, reason: str) -> Decided:
    """Say that a session is deleted and erased. The last row names it: no other one will."""
    if not head.is_erasing:
        return Decided(None)
    fact = pb.Fact(erased=pb.ErasedFact(reason=reason))
    specs = [_fact(Session.Erased, fact, Origin(session_id=session_id))]
    if not head.is_deleted:
        specs.insert(0, _fact(Session.Deleted, pb.Fact(deleted=pb.DeletedFact())))
    return Decided(None, build(head, specs, call.now_ns, call.request))


def require_unerased(head: Session, session_id: str) -> None:
    """Raise SessionDeletedError if a session is erased, or is being: nothing may fork it."""
    if head.is_erasing or head.is_erased:
        raise SessionDeletedError(session_id=session_id)


def open_writer(
    head: Session, call: Call, session_id: str, expected_epoch: int | None, owner: str
) -> Decided:
    """Begin a writer epoch. The answer is its number."""
    require_session(head, session_id)
    if expected_epoch is not None and expected_epoch != head.epoch:
        raise StaleWriterError(writer_epoch=expected_epoch, current_epoch=head.epoch)
    epoch = head.last_epoch + 1
    fact = pb.Fact(writer_opened=pb.WriterOpenedFact(epoch=epoch, owner=owner))
    spec = _fact(Session.WriterOpened, fact)
    return Decided((epoch, head.next_seq), build(head, [spec], call.now_ns, call.request))


def close_writer(head: Session, call: Call, session_id: str, epoch: int) -> Decided:
    """End the writer epoch."""
    require_session(head, session_id)
    if epoch != head.epoch or not epoch:
        raise StaleWriterError(writer_epoch=epoch, current_epoch=head.epoch)
    spec = _fact(Session.WriterClosed, pb.Fact(writer_closed=pb.WriterClosedFact(epoch=epoch)))
    return Decided(head.next_seq, build(head, [spec], call.now_ns, call.request))


def drop_history(
    head: Session, call: Call, session_id: str, dropped: Sequence[int], whole_from_seq: int
) -> Decided:
    """Say that the bodies of some seqs are dropped."""
    require_session(head, session_id)
    fact = pb.HistoryDroppedFact(whole_from_seq=whole_from_seq, dropped=seq_ranges(dropped))
    spec = _fact(Session.HistoryDropped, pb.Fact(history_dropped=fact))
    return Decided(
        (len(dropped), whole_from_seq, head.next_seq),
        build(head, [spec], call.now_ns, call.request),
    )


def seq_ranges(seqs: Sequence[int]) -> list[pb.SeqRange]:
    """Return ascending seqs as ranges, both ends in."""
    ranges: list[pb.SeqRange] = []
    for seq in seqs:
        if ranges and ranges[-1].last + 1 == seq:
            ranges[-1].last = seq
        else:
            ranges.append(pb.SeqRange(first=seq, last=seq))
    return ranges


def rewind(
    head: Session, call: Call, session_id: str, to_seq: int, guard: Guard, target: Fold, cut: Cut
) -> Decided:
    """Append a rewind to a seq whose fold is given, and what is open there."""
    require_session(head, session_id)
    require_guard(head, guard)
    body = pb.EventBody(rewind=pb.Rewind(to_seq=to_seq)).SerializeToString()
    envelope = Envelope(turns=turns_to(target.turns), unanswered_call_ids=cut.unanswered_call_ids)
    spec = RowSpec(Session.Event, body, EventType.REWIND, envelope=envelope)
    seq = head.next_seq
    events = build(head, [spec], call.now_ns, call.request)
    row = RowRef(head.id, events[0].originator_version)
    passed = [Passed(seq, EventType.REWIND, row, rewind_to=to_seq)]
    return Decided((seq, seq + 1, cut), events, passed, target)


def append(
    head: Session,
    call: Call,
    session_id: str,
    batch: Sequence[Incoming],
    guard: Guard,
    surface: Surface[Live] | None,
    *,
    originals: Originals = MappingProxyType({}),
    require_balanced: bool = False,
    validate_only: bool = False,
) -> Decided:
    """Append a batch, each event judged after the ones before it. Replaces need the surface.

    It is the caller's no longer. Trims need the messages of the stored results that they replace,
    `originals`.
    """
    require_session(head, session_id)
    require_guard(head, guard)
    placing = Placing(head, surface, require_balanced, originals)
    specs = [placing.place(index, event) for index, event in enumerate(batch)]
    mark_steps(specs, head.next_seq + len(batch))
    answer = Appended(head.next_seq, head.next_seq + len(batch), tuple(placing.outcomes))
    if validate_only:
        return Decided(answer)
    events = build(head, specs, call.now_ns, call.request)
    return Decided(answer, events, placing.passed)


def mark_steps(specs: Sequence[RowSpec], next_seq: int) -> None:
    """Note on the step_starts among a call's rows where it ends: there their requests are built."""
    for spec in specs:
        if spec.type == EventType.STEP_START:
            spec.envelope.request_mark.next_seq = next_seq


class Placing:
    """Places a batch's events one by one on a surface, which is its own.

    A trim is held to the message of the result it replaces, which is in the batch or among the
    originals. Without originals, None, it is only noted in `trimmed` which stored ones are needed.
    """

    def __init__(
        self,
        head: Session,
        surface: Surface[Live] | None,
        require_balanced: bool,
        originals: Originals | None = MappingProxyType({}),
    ) -> None:
        self._head = head
        self._originals = originals
        self._placed: dict[RowRef, Incoming] = {}
        self.trimmed: list[RowRef] = []
        self._surface = surface
        self._mentions = Mentions(() if surface is None else surface)
        self._require_balanced = require_balanced
        self.outcomes: list[ReplaceOutcome] = []
        self.passed: list[Passed] = []

    def place(self, index: int, event: Incoming) -> RowSpec:
        """Place one event and return its row. Raises the replace's typed errors."""
        seq = self._head.next_seq + index
        row = RowRef(self._head.id, self._head.version + 1 + index)
        envelope = Envelope(header_texts=event.header_texts)
        range_ = None
        live = None
        if event.message is not None:
            if event.replace is not None:
                range_ = self._resolved(event, seq, index)
                if event.trim:
                    self._judge_trim(_said(event), range_, index)
            self._placed[row] = event
            live = live_of(event.message, seq, seq if range_ is None else range_.start, row)
            self._stand(index, live, range_, envelope)
        self.passed.append(Passed(seq, event.type, row, live, range_))
        return RowSpec(Session.Event, event.body, event.type, time=event.time, envelope=envelope)

    def _resolved(self, event: Incoming, seq: int, index: int) -> PositionRange:
        assert self._surface is not None
        range_ = event.replace
        try:
            if isinstance(range_, ByEntries):
                range_ = self._surface.resolve(range_.first_seq, range_.last_seq)
            assert range_ is not None
            validate_replace(range_, seq)
        except InvalidFieldError as error:
            raise error.within(f"events[{index}]") from None
        if not event.allow_empty:
            self._surface.require_shadowed(range_)
        return range_

    def _judge_trim(self, trim: Said, range_: PositionRange, index: int) -> None:
        assert self._surface is not None
        covered = self._surface.entries[self._surface.covered(range_.start, range_.stop)]
        try:
            if len(covered) != 1:
                wrong = f"a trim replaces one result; the range covers {len(covered)} messages"
                raise InvalidFieldError.of("replace.trim", wrong)
            trimmed = self._said_at(covered[0].row)
            if trimmed is not None:
                require_trim(trimmed, trim)
        except InvalidFieldError as error:
            raise error.within(f"events[{index}]") from None

    def _said_at(self, row: RowRef) -> Said | None:
        if row in self._placed:
            return _said(self._placed[row])
        if self._originals is None:
            self.trimmed.append(row)
            return None
        return self._originals[row]

    def _stand(
        self, index: int, live: Live, range_: PositionRange | None, envelope: Envelope
    ) -> None:
        if self._surface is None:
            return
        if range_ is None:
            self._surface.insert(live)
            self._mentions.inserted(live)
            return
        gone = self._surface.entries[self._surface.covered(range_.start, range_.stop)]
        orphans, calls = self._mentions.unpaired_by(gone, range_.stop, live)
        if self._require_balanced and (orphans or calls):
            raise UnbalancedRangeError(orphaned_result_ids=orphans, unanswered_call_ids=calls)
        _, shadowed = self._surface.replace(live, range_.stop)
        self._mentions.replaced(shadowed, live)
        seqs = tuple(each.seq for each in shadowed)
        self.outcomes.append(ReplaceOutcome(index, live.seq, live.position, seqs, orphans, calls))
        envelope.replace.start, envelope.replace.stop = range_.start, range_.stop
        envelope.replace.shadowed_seqs.extend(seqs)
        envelope.orphaned_result_ids.extend(orphans)
        envelope.unanswered_call_ids.extend(calls)


def _said(event: Incoming) -> Said:
    assert event.message is not None
    return Said(message_from_proto(event.message), event.group)


def appended_from(rows: Sequence[Envelope]) -> Appended:
    """Return the first answer to a batch from the envelopes it wrote."""
    outcomes = tuple(
        ReplaceOutcome(
            index,
            e.seq,
            e.replace.start,
            tuple(e.replace.shadowed_seqs),
            tuple(e.orphaned_result_ids),
            tuple(e.unanswered_call_ids),
        )
        for index, e in enumerate(rows)
        if e.HasField("replace")
    )
    return Appended(rows[0].seq, rows[-1].seq + 1, outcomes)
