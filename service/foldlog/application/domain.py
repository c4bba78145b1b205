"""The session aggregate: a head that stays small however long its log, and its domain events."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple, Self, cast
from uuid import UUID

from eventsourcing.domain import Aggregate, OriginatorIDError, OriginatorVersionError

from foldlog.application.identity import SERVER_MADE, key_of
from foldlog.application.seal import GENESIS, seal
from foldlog.core.errors import SeqBehindHeadError
from foldlog.core.event import EventType
from foldlog.core.turns import TurnState
from foldlog.internal.v1 import storage_pb2
from foldlog.internal.v1.storage_pb2 import Envelope, Origin, StoredFact, Turns
from foldlog.v1.event_pb2 import HistoryDroppedFact

MAX_RUNS = 256
MAX_REQUESTS = 256
MAX_DROPS = 256
TOO_MANY_DROPS = (-1,)
NO_KEY = b""
NO_EPOCH = -1  # no request header was written yet; 0 is the time before any writer epoch
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Run:
    """Rows of consecutive versions and consecutive seqs."""

    version: int
    seq: int
    count: int


class Answered(NamedTuple):
    """A request that was answered: where its rows are, and what it asked for."""

    version: int
    row_count: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Segment:
    """An ancestor's rows that a session reads: versions 1 to to_version, seqs up to to_seq."""

    aggregate_id: UUID
    session_id: str
    to_version: int
    to_seq: int
    # The newest of a session's own rows; an ancestor's are not known.
    runs: tuple[Run, ...] = field(default=(), compare=False)

    def version_of(self, seq: int) -> int | None:
        """Return the newest version up to a seq, or None if the runs do not reach back."""
        index = bisect_right(self.runs, seq, key=lambda run: run.seq) - 1
        if index < 0:
            return None
        run = self.runs[index]
        return run.version + min(seq - run.seq, run.count - 1)


class Session(Aggregate):
    """The head of one session: everything a write needs to know, and no message.

    Runs hold the newest 256 only, and requests twice as many at most; older ones are found in the
    store.
    """

    TOPIC = "session"

    session_id: str
    tenant: str
    key: bytes
    next_seq: int
    chain: bytes
    labels: dict[str, str]
    metadata_json: str
    created_ns: int
    updated_ns: int
    parent: tuple[str, int] | None
    segments: tuple[Segment, ...]
    epoch: int
    last_epoch: int
    is_deleted: bool
    is_erasing: bool
    is_erased: bool
    runs: list[Run]
    requests: dict[bytes, Answered]
    turns: TurnState
    whole_from_seq: int
    header_epoch: int
    dropped_from_seq: int | None
    drop_versions: tuple[int, ...]

    class Event(Aggregate.Event):
        """A row of the event table: an event of the log, or a fact."""

        TOPIC = "event"
        envelope: Envelope

        def mutate(self, aggregate: Any) -> Any:
            """Apply the row to the head, whose version must be the one before."""
            head = Session.blank(self.originator_id) if aggregate is None else aggregate
            if self.originator_id != head.id:
                raise OriginatorIDError(self.originator_id, head.id)
            if self.originator_version != head.version + 1:
                raise OriginatorVersionError(self.originator_version, head.version + 1)
            self.apply(head)
            head.version = self.originator_version
            return head

        def apply(self, aggregate: Any) -> None:
            """Move the head past an event of the log."""
            aggregate.pass_event(self.originator_version, self.envelope)

    class Fact(Event):
        """A row that is no event of the log."""

        TOPIC = "fact"

        def apply(self, aggregate: Any) -> None:
            """Move the head past the fact."""
            aggregate.pass_row(self.originator_version, self.envelope)
            aggregate.next_seq = max(aggregate.next_seq, self.envelope.seq)
            stored = StoredFact.FromString(self.envelope.body)
            if self.envelope.lineage and not self.envelope.body:
                aggregate.segments = segments_from(self.envelope.lineage)
            aggregate.pass_fact(stored)

    class Created(Fact, Aggregate.Created):
        """The session was created."""

        TOPIC = "created"

    class Forked(Fact, Aggregate.Created):
        """The session was forked."""

        TOPIC = "forked"

    class Updated(Fact):
        """Labels or metadata changed."""

        TOPIC = "updated"

    class WriterOpened(Fact):
        """A writer epoch began."""

        TOPIC = "writer_opened"

    class WriterClosed(Fact):
        """The writer epoch ended."""

        TOPIC = "writer_closed"

    class HistoryDropped(Fact):
        """History that no longer counts was dropped."""

        TOPIC = "history_dropped"

    class Restored(Fact):
        """Events were restored: carries the request, since they keep their own."""

        TOPIC = "restored"

    class Deleted(Fact):
        """The session was deleted."""

        TOPIC = "deleted"

    class ErasureBegun(Fact):
        """An erasure began: the session is forked no more."""

        TOPIC = "erasure_begun"

    class Erased(Fact):
        """The session was erased. The row outlives its keys, so it is under none."""

        TOPIC = "erased"

    class ErasureWithdrawn(Fact):
        """An erasure was given up."""

        TOPIC = "erasure_withdrawn"

    @classmethod
    def blank(cls, aggregate_id: UUID, tenant: str = "default") -> Self:
        """Return the head of a session without rows."""
        head = cls.__new__(cls)
        cast(Any, head).__base_init__(aggregate_id, 0, EPOCH)
        head.session_id, head.tenant, head.key = "", tenant, b""
        head.next_seq, head.chain = 0, GENESIS
        head.labels, head.metadata_json = {}, ""
        head.created_ns = head.updated_ns = 0
        head.parent, head.segments = None, ()
        head.epoch = head.last_epoch = 0
        head.is_deleted = head.is_erasing = head.is_erased = False
        head.runs, head.requests = [], {}
        head.turns = TurnState()
        head.whole_from_seq, head.dropped_from_seq, head.drop_versions = 0, None, ()
        head.header_epoch = NO_EPOCH
        return head

    def copy(self) -> Self:
        """Return an independent head."""
        twin = copy(self)
        twin.labels = dict(self.labels)
        twin.runs = self.runs.copy()
        twin.requests = dict(self.requests)
        return twin

    @property
    def exists(self) -> bool:
        """Whether any row was written."""
        return self.version > 0

    def pass_row(self, version: int, envelope: Envelope) -> None:
        """Take over what every row carries."""
        self.chain = envelope.chain
        self.updated_ns = envelope.written_ns
        key = key_of(envelope)
        if key:
            count = envelope.row_count or 1
            self.requests[key] = Answered(version, count, envelope.request_digest)
            if len(self.requests) >= 2 * MAX_REQUESTS:
                # Seldom and many: a dict passes over all that was taken from its front.
                newest = islice(self.requests.items(), MAX_REQUESTS, None)
                self.requests = dict(newest)

    def pass_event(self, version: int, envelope: Envelope) -> None:
        """Take over an event of the log."""
        self.pass_row(version, envelope)
        seq = envelope.seq
        last = self.runs[-1] if self.runs else None
        if last and last.version + last.count == version and last.seq + last.count == seq:
            self.runs[-1] = Run(last.version, last.seq, last.count + 1)
        else:
            self.runs.append(Run(version, seq, 1))
            del self.runs[:-MAX_RUNS]
        self.next_seq = seq + 1
        if envelope.type == EventType.REWIND:
            self.turns = turns_from(envelope.turns)
        else:
            self.turns = self.turns.after(envelope.type, seq)
        if envelope.type == EventType.REQUEST_HEADER:
            self.header_epoch = self.epoch

    def pass_fact(self, stored: StoredFact) -> None:
        """Take over a fact."""
        fact = stored.fact
        match fact.WhichOneof("kind"):
            case "created":
                self._begin(stored.origin, fact.created.labels, fact.created.metadata_json)
            case "forked":
                self.parent = (fact.forked.parent_session_id, fact.forked.at_seq)
                self.next_seq = fact.forked.at_seq + 1
                self._begin(stored.origin, fact.forked.labels, fact.forked.metadata_json)
            case "updated":
                self.labels = dict(fact.updated.labels)
                self.metadata_json = fact.updated.metadata_json
            case "writer_opened":
                self.epoch = self.last_epoch = fact.writer_opened.epoch
            case "writer_closed":
                self.epoch = 0
            case "history_dropped":
                self._drop(fact.history_dropped)
            case "deleted":
                self.is_deleted = True
            case "erasure_begun":
                self.is_erasing = True
            case "erasure_withdrawn":
                self.is_erasing = False
            case "erased":
                self.is_deleted = self.is_erased = True
                self.is_erasing = False
                self.labels, self.metadata_json, self.key = {}, "", b""

    def _drop(self, fact: HistoryDroppedFact) -> None:
        self.whole_from_seq = fact.whole_from_seq
        if not fact.dropped:
            return
        self.drop_versions = (*self.drop_versions, self.version + 1)
        if len(self.drop_versions) > MAX_DROPS or self.drop_versions[0] < 0:
            self.drop_versions = TOO_MANY_DROPS
        for dropped in fact.dropped[:1]:
            known = self.dropped_from_seq
            self.dropped_from_seq = dropped.first if known is None else min(known, dropped.first)

    def _begin(self, origin: Origin, labels: Any, metadata_json: str) -> None:
        self.session_id, self.key = origin.session_id, origin.key
        self.labels, self.metadata_json = dict(labels), metadata_json
        self.created_ns = self.updated_ns
        self.segments = segments_from(origin.segments)
        self.turns = turns_from(origin.turns)
        self.whole_from_seq = origin.whole_from_seq
        if origin.HasField("dropped_from_seq"):
            self.dropped_from_seq = origin.dropped_from_seq


TOPICS: dict[str, type[Session.Event]] = {
    kind.TOPIC: kind
    for kind in (
        Session.Event,
        Session.Created,
        Session.Forked,
        Session.Updated,
        Session.WriterOpened,
        Session.WriterClosed,
        Session.HistoryDropped,
        Session.Restored,
        Session.Deleted,
        Session.ErasureBegun,
        Session.Erased,
        Session.ErasureWithdrawn,
    )
}


def segments_from(segments: Iterable[storage_pb2.Segment]) -> tuple[Segment, ...]:
    """Return the ancestors' stretches that a first row names, the oldest first."""
    return tuple(
        Segment(UUID(bytes=s.aggregate_id), s.session_id, s.to_version, s.to_seq) for s in segments
    )


def turns_from(turns: Turns) -> TurnState:
    """Return the turn state a row carries."""
    step = turns.open_step_seq if turns.HasField("open_step_seq") else None
    return TurnState(tuple(turns.open_turn_seqs), step)


def turns_to(turns: TurnState) -> Turns:
    """Return a turn state as a row carries it."""
    return Turns(open_turn_seqs=turns.open_turns, open_step_seq=turns.open_step_seq)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The key of a write's request id, and the digest of what it asks for."""

    key: bytes
    digest: bytes

    @property
    def request_id(self) -> str:
        """The request id as the client gave it; empty where the service made it."""
        return "" if self.key.startswith(SERVER_MADE) else self.key.decode()

    def mark(self, envelope: Envelope) -> None:
        """Mark the first row of the call."""
        envelope.request_id, envelope.request_digest = self.request_id, self.digest
        if not envelope.request_id:
            envelope.made_request_key = self.key


@dataclass(slots=True)
class RowSpec:
    """A row to be written: an event with its seq, or a fact."""

    kind: type[Session.Event]
    body: bytes
    type: int = 0
    seq: int | None = None
    time: tuple[int, int] | None = None
    envelope: Envelope = field(default_factory=Envelope)


@lru_cache(4)
def _stamp(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def build(
    head: Session,
    specs: list[RowSpec],
    now_ns: int,
    request: RequestKey | None,
    row_count: int | None = None,
) -> list[Session.Event]:
    """Return the domain events of one call and move the head past them.

    Each spec's envelope may hold replace, turns and dropped already. An event without a seq takes
    the head's next; a row without a time takes now.
    """
    now = divmod(now_ns, 1_000_000_000)
    stamp = _stamp(now[0])
    events = []
    for spec in specs:
        envelope = spec.envelope
        envelope.seq = head.next_seq if spec.seq is None else spec.seq
        if envelope.seq < head.next_seq:
            raise SeqBehindHeadError(seq=envelope.seq, next_seq=head.next_seq)
        envelope.type = spec.type
        envelope.time_s, envelope.time_ns = spec.time or now
        envelope.written_ns = now_ns
        if request is not None:
            request.mark(envelope)
            envelope.row_count = row_count or len(specs)
            request = None
        version = head.version + 1
        # What outlives a session's keys is under none of them.
        key = NO_KEY if spec.kind is Session.Erased else head.key
        seal(envelope, spec.body, key, head.chain, head.id, version, spec.kind.TOPIC)
        events.append(domain_event(spec.kind, head.id, version, stamp, envelope))
        events[-1].mutate(head)
    return events


def domain_event(
    kind: type[Session.Event], aggregate_id: UUID, version: int, stamp: datetime, envelope: Envelope
) -> Session.Event:
    """Return a domain event of any kind. The package's metaclass makes the classes' signatures."""
    make = cast(Callable[..., Session.Event], kind)
    if kind is Session.Event:
        return make(
            originator_id=aggregate_id,
            originator_version=version,
            timestamp=stamp,
            envelope=envelope,
        )
    given = {"originator_topic": Session.TOPIC} if issubclass(kind, Aggregate.Created) else {}
    return make(
        originator_id=aggregate_id,
        originator_version=version,
        timestamp=stamp,
        envelope=envelope,
        **given,
    )
