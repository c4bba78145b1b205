"""Folds made from stored rows: at the head or at any seq, from the nearest checkpoint on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from eventsourcing.persistence import StoredEvent

from foldlog.application.bodies import folded
from foldlog.application.checkpoint import TOPIC, fold_from, head_from, sealed, standing, unsealed
from foldlog.application.domain import TOO_MANY_DROPS, Segment, Session
from foldlog.application.fold import EventRef, Fold, Live, Passed, RowRef, holds
from foldlog.application.mapper import domain_event
from foldlog.application.rows import UNKNOWN_DIGEST, Row, RowReader, passed
from foldlog.core.active import active_path
from foldlog.core.errors import EventCorruptError, HistoryDroppedError
from foldlog.core.event import EventType, Record
from foldlog.internal.v1.storage_pb2 import Checkpoint, FoldState, StoredFact
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store

NEWEST = 2**62


@dataclass(slots=True)
class Opened:
    """A session as it was read: its head, and what its fold is made from."""

    head: Session
    base: FoldState | None
    tail: list[Passed]


def spans_of(head: Session) -> list[Segment]:
    """Return a session's lineage as stretches of rows, its own last."""
    runs = tuple(head.runs)
    own = Segment(head.id, head.session_id, head.version, head.next_seq - 1, runs)
    return [*head.segments, own]


def owners_of(spans: Iterable[Segment]) -> list[UUID]:
    """Return the aggregate ids of a lineage."""
    return [span.aggregate_id for span in spans]


class History:
    """Makes heads and folds from the store. Blocking: called on reader threads."""

    def __init__(self, store: Store, reader: RowReader) -> None:
        self._store = store
        self.reader = reader

    def anew(self) -> History:
        """Return a history whose reader has kept nothing yet."""
        return History(self._store, self.reader.anew())

    def open(self, aggregate_id: UUID, tenant: str) -> Opened:
        """Read a session: its newest checkpoint and the rows after it.

        A session without rows is blank.
        """
        checkpoint = self._checkpoint(aggregate_id, None)
        base = None
        head = Session.blank(aggregate_id, tenant)
        if checkpoint is not None:
            head, base = head_from(checkpoint.head, aggregate_id, tenant), checkpoint.fold
        opened = Opened(head, base, self.follow(head))
        if head.exists and not head.key and not head.is_erased:
            damage = "its first row has no body, and no fact says that it was erased"
            raise EventCorruptError(session_id=str(aggregate_id), seq=-1, damage=damage)
        return opened

    def follow(self, head: Session) -> list[Passed]:
        """Move a head past the rows stored after it, and return the events among them."""
        events = []
        for row in self.reader.rows(head.id, head.version, None, head.next_seq):
            if not row.is_event:
                row.sound()  # a fact decides who may write: nothing goes past a damaged one
            if row.ref.version != head.version + 1:
                raise self._gap(head)
            stored = StoredEvent(head.id, row.ref.version, row.topic, b"")
            domain_event(stored, row.envelope).mutate(head)
            if row.is_event:
                events.append(passed(row))
        return events

    def _gap(self, head: Session) -> EventCorruptError:
        known = head.session_id or str(head.id)
        return EventCorruptError(session_id=known, seq=head.next_seq, damage="a row is missing")

    def fold(self, opened: Opened, bodies: dict[RowRef, bytes] | None = None) -> Fold:
        """Return the fold of a session just read.

        Into `bodies` go the messages of the rows that are read for it.
        """
        spans = spans_of(opened.head)
        if opened.base is not None:
            fold = self._advance(spans, opened.base, opened.tail, bodies)
        else:
            below = self.fold_of(spans[:-1]) if len(spans) > 1 else Fold()
            fold = self._advance(spans, below, opened.tail)
        fold.next_seq = opened.head.next_seq
        fold.advance(len(fold.surface))
        return fold

    def fold_at(self, head: Session, seq: int) -> Fold:
        """Return the fold after a seq.

        Raises HistoryDroppedError where it needs a dropped event.
        """
        fold = self.fold_of(self.reader.cut(spans_of(head), seq))
        fold.next_seq = seq + 1
        fold.sound()
        dropped = self.dropped(head) if seq < head.whole_from_seq else []
        for live in fold.surface:
            is_dropped = live.row.aggregate_id == head.id and holds(dropped, live.seq)
            if is_dropped or live.is_gone_for(head.id):
                raise HistoryDroppedError(seq=live.seq, whole_from_seq=head.whole_from_seq)
        fold.advance(len(fold.surface))
        return fold

    def dropped(self, head: Session) -> list[tuple[int, int]]:
        """Return the seqs that a session's facts say were dropped, as ascending ranges.

        The facts decide, not the rows: their bodies go a while later.
        """
        if head.drop_versions == TOO_MANY_DROPS:
            return [(0, head.whole_from_seq)]
        ranges = []
        for row in self.reader.some(head.id, head.drop_versions):
            fact = StoredFact.FromString(row.envelope.body).fact.history_dropped
            ranges += [(each.first, each.last) for each in fact.dropped]
        return sorted(ranges)

    def fold_of(self, spans: Sequence[Segment], independent: bool = False) -> Fold:
        """Return the fold at a lineage's end, from its newest checkpoint or from its first row."""
        index, version, base = 0, 0, None
        if not independent:
            index, version, base = self._base(spans)
        rows = self.reader.walk(spans, index, version)
        events = [passed(row) for row in rows if row.is_event]
        return self._advance(spans, base if base is not None else Fold(), events)

    def grown(self, spans: Sequence[Segment], fold: Fold, after: int) -> Fold:
        """Return a fold that has taken in the last span's rows after a version.

        The fold given is moved itself. What rewinds go back to may come from lower checkpoints.
        """
        last = spans[-1]
        rows = self.reader.rows(last.aggregate_id, after, last.to_version, fold.next_seq)
        return self._advance(spans, fold, [passed(row) for row in rows if row.is_event])

    def _base(self, spans: Sequence[Segment]) -> tuple[int, int, FoldState | None]:
        for index in range(len(spans) - 1, -1, -1):
            checkpoint = self._checkpoint(spans[index].aggregate_id, spans[index].to_version)
            if checkpoint is not None:
                return index, checkpoint.head.version, checkpoint.fold
        return 0, 0, None

    def _checkpoint(self, aggregate_id: UUID, version: int | None) -> Checkpoint | None:
        row = self._store.checkpoints.latest(aggregate_id, NEWEST if version is None else version)
        if row is None:
            return None
        # A cache: the rows themselves decide.
        return unsealed(aggregate_id, row.originator_version, row.state)

    def _advance(
        self,
        spans: Sequence[Segment],
        base: Fold | FoldState,
        events: Sequence[Passed],
        bodies: dict[RowRef, bytes] | None = None,
    ) -> Fold:
        if all(event.rewind_to is None for event in events):
            fold = self._loaded(spans, base, bodies)
            for event in events:
                fold.take(event)
            return fold
        return self._advance_through_rewinds(spans, base, events)

    def _advance_through_rewinds(
        self, spans: Sequence[Segment], base: Fold | FoldState, events: Sequence[Passed]
    ) -> Fold:
        marks = self._marks(spans, base, events)
        records = [Record(e.seq, e.type, e.replace, e.rewind_to) for e in events]
        target, active = active_path(records, base.next_seq - 1)
        if target is None:
            fold = self._loaded(spans, base)
        else:
            fold = self.fold_of(self.reader.cut(spans, target))
        of_seq = {e.seq: e for e in events}
        for record in active:
            fold.take(of_seq[record.seq])
        fold.replaces, fold.rewinds, fold.step = marks.replaces, marks.rewinds, marks.step
        fold.next_seq = events[-1].seq + 1
        return fold

    def _marks(
        self, spans: Sequence[Segment], base: Fold | FoldState, events: Sequence[Passed]
    ) -> Fold:
        """Return a fold that has every replace and rewind of the log, and nothing else right."""
        marks = Fold()
        before = base if isinstance(base, Fold) else fold_from(base, owners_of(spans), [])
        marks.replaces, marks.rewinds = before.replaces.copy(), before.rewinds.copy()
        for event in events:
            if event.live is not None and event.replace is not None:
                marks.take(event)
            elif event.rewind_to is not None:
                marks.go_back(event, Fold())
        steps = [e for e in events if e.type == EventType.STEP_START]
        marks.step = EventRef(steps[-1].seq, steps[-1].row) if steps else before.step
        return marks

    def _loaded(
        self,
        spans: Sequence[Segment],
        base: Fold | FoldState,
        bodies: dict[RowRef, bytes] | None = None,
    ) -> Fold:
        if isinstance(base, Fold):
            return base
        owners = owners_of(spans)
        places = standing(base, owners)
        wanted: dict[UUID, list[int]] = {}
        for _, _, ref in places:
            wanted.setdefault(ref.aggregate_id, []).append(ref.version)
        found: dict[RowRef, Live | Row] = {}
        for owner, versions in wanted.items():
            for row in self.reader.some(owner, versions, tolerant=True):
                live = passed(row).live
                found[row.ref] = row if live is None else live
                if bodies is not None and row.damage is None and row.envelope.body:
                    bodies[row.ref] = folded(row.envelope)
        entries = [_standing(found[ref], position, seq) for position, seq, ref in places]
        return fold_from(base, owners, entries)

    def save_checkpoint(self, head: Session, fold: Fold) -> None:
        """Write a checkpoint of a head and its fold, which stand at the same version.

        Of a session that is erased meanwhile none stays, nor a data key made for it: an erasure
        destroys them after its fact is stored, so that either it finds them or the fact is found.
        """
        row = SessionStoredEvent(
            originator_id=head.id,
            originator_version=head.version,
            topic=TOPIC,
            state=sealed(head, fold, owners_of(spans_of(head))),
            tenant=head.tenant,
        )
        self._store.checkpoints.insert_events([row])
        if self._is_erased_since(head):
            self._store.checkpoints.delete(head.id)
            self._store.data_keys.delete(head.id)

    def _is_erased_since(self, head: Session) -> bool:
        newest = self._store.recorder.select_events(head.id, gt=head.version, desc=True, limit=1)
        return bool(newest) and newest[0].topic == Session.Erased.TOPIC


def _standing(found: Live | Row, position: int, seq: int) -> Live:
    """Return a row that stands on a checkpoint's surface, also if it does not say so any more."""
    if isinstance(found, Live):
        return found
    damage = found.damage and EventCorruptError(
        session_id=found.damage.session_id, seq=seq, damage=found.damage.damage
    )
    return Live(position, seq, found.ref, 0, UNKNOWN_DIGEST, damage=damage)
