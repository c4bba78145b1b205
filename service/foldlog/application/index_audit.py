"""An audit of the session index: a session's entry is to be what its rows come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog.application.domain import Session
from foldlog.application.feed import Feed
from foldlog.application.projection import change_of, merged
from foldlog.application.reference_audit import Noted
from foldlog.application.rows import Row
from foldlog.application.verdict import Fault
from foldlog.application.walk import Walked
from foldlog.core.errors import StoreUnavailableError
from foldlog.core.event import SURFACE_TYPES, EventType
from foldlog.core.ledger import Line, LineKind
from foldlog.persistence.entries import IndexEntry, entry_of
from foldlog.persistence.index import IndexChange
from foldlog.persistence.ledger import LoggedCall
from foldlog.persistence.listing import labels_text
from foldlog.v1.service_pb2 import AUDITED_PART_INDEX

ERASED = {"labels": labels_text(()), "metadata_json": "", "deleted": True}


@dataclass(frozen=True, slots=True)
class Indexed:
    """A session's entry, and between which places in the feed the index was when it was read.

    `fault` says what is wrong with how far it is; then the entry cannot be judged. Beside it, what
    else the system alone sees: noted attachments, and checkpoints filed under another tenant.
    """

    entry: IndexEntry | None
    low: int
    high: int
    fault: str
    noted: Noted
    misfiled: Sequence[int]


async def indexed(feed: Feed, aggregate_id: UUID, tenant: str) -> Indexed:
    """Read a session's entry once the index has passed all that was there before the call."""
    end, fault = await feed.newest(), ""
    try:
        await feed.settled()
    except StoreUnavailableError:
        fault = "it does not keep up with the log"
    low = await feed.position()
    entry = await feed.entry(aggregate_id)
    high = await feed.position()
    if low < end and not fault:
        fault = f"its place in the feed, {low}, is behind what it has passed"
    if high > await feed.newest():
        fault = f"its place in the feed, {high}, is behind the feed's end: rows there are missing"
    noted = Noted(*await feed.references(aggregate_id))
    misfiled = await feed.misfiled_checkpoints(aggregate_id, tenant)
    return Indexed(entry, low, high, fault, noted, misfiled)


class IndexAudit:
    """Takes in a session's rows one after the other, and compares at the end."""

    def __init__(self, found: Indexed, aggregate_id: UUID, tenant: str, session_id: str) -> None:
        self._found = found
        self._id, self._tenant, self._session_id = aggregate_id, tenant, session_id
        self._call_ids = found.entry.call_ids() if found.entry else {}
        self._change: IndexChange | None = None
        self._custom: dict[tuple[str, str], None] = {}
        self._calls: list[LoggedCall] = []
        self._was_right = False
        self._erased_place: int | None = None
        self._is_stripped = False

    @property
    def is_erased(self) -> bool:
        """Whether rows say that the session is erased, or what was in them is gone already.

        That may have gone on while they were read, so that they no longer come to anything.
        """
        return self._is_stripped or self._erased_place is not None

    def take(self, walked: Walked) -> None:
        """Take in the next row, if the index may have passed it."""
        place = walked.stored.id
        self._note_erasure(walked.row, place)
        if self._found.fault or walked.row.damage is not None or place > self._found.high:
            return
        if place > self._found.low:
            self._was_right = self._was_right or not list(self._departures())
        envelope = walked.row.envelope
        try:
            change = change_of(self._id, self._tenant, walked.row.topic, envelope)
        except (DecodeError, ValueError):
            return
        self._custom |= dict.fromkeys(change.custom)
        self._calls += change.calls
        if envelope.type == EventType.TOOL_RESULT and not envelope.body:
            self._calls += self._of_dropped(envelope.seq)
        change = change._replace(custom=(), calls=())
        self._change = change if self._change is None else merged(self._change, change)

    def _note_erasure(self, row: Row, place: int) -> None:
        if row.topic == Session.Erased.TOPIC and row.damage is None:
            self._erased_place = place
        # A snapshot drops the bodies of surface events alone.
        self._is_stripped |= row.envelope.dropped and row.envelope.type not in SURFACE_TYPES

    def _of_dropped(self, seq: int) -> list[LoggedCall]:
        """Return what a result resolved whose body is gone: only the ledger knows it now."""
        if seq not in self._call_ids:
            return []
        return [LoggedCall(Line(seq, LineKind.RESOLVED, self._call_ids[seq]))]

    def faults(self) -> list[Fault]:
        """Return where the entry is not what the rows come to."""
        if self._found.fault:
            said = [self._found.fault]
        elif self.is_erased:
            said = list(self._left())
        elif self._was_right:
            said = []
        else:
            said = list(self._departures())
        return [Fault(self._session_id, None, each, AUDITED_PART_INDEX) for each in said]

    def _left(self) -> Iterator[str]:
        """Yield what the index holds of an erased session and is to hold no more."""
        entry, place = self._found.entry, self._erased_place
        if place is None or place > self._found.low:
            return
        if entry is None:
            yield "it does not list it"
            return
        for name, value in ERASED.items():
            if entry.columns[name] != value:
                yield f"its {name} is {entry.columns[name]!r}, and by the log {value!r}"
        if entry.terms or entry.calls:
            yield "it finds an erased session by what was said in it"

    def _departures(self) -> Iterator[str]:
        entry, change = self._found.entry, self._change
        if entry is None or change is None or change.created is None:
            if (entry is None) != (change is None):
                yield "it does not list it" if entry is None else "it lists it, and has no rows"
            return
        right = entry_of(change._replace(custom=tuple(self._custom), calls=tuple(self._calls)))
        for name, value in right.columns.items():
            if entry.columns[name] != value:
                yield f"its {name} is {entry.columns[name]!r}, and by the log {value!r}"
        if entry.terms != right.terms:
            yield "it finds it by other labels, parents or keys than the log has"
        if entry.lineage != right.lineage:
            yield "it knows other ancestors of it than the log"
        if entry.calls != right.calls:
            yield "it knows other dispatched calls of it than the log"
