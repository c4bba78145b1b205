"""Making the session index anew from the log, for when it cannot be believed any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from foldlog.application.projection import coalesced
from foldlog.core.event import EventType
from foldlog.core.ledger import Line, LineKind
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.index import IndexChange
from foldlog.persistence.ledger import LoggedCall
from foldlog.persistence.rows import SessionNotification, row_id
from foldlog.persistence.store import Store

PAGE = 500
PAGE_BYTES = 16 * 1024 * 1024


def reindex(store: Store, on_rows: Callable[[int], None]) -> int:
    """Make the index anew up to where the log is now, and return how many rows that were.

    In one transaction: listings show what was there before until it ends. What is written meanwhile
    the services index, once it has ended. What tenants use is counted anew behind it.
    """
    place = store.recorder.max_notification_id() or 0
    count = 0

    def stretches() -> Iterator[Sequence[IndexChange]]:
        nonlocal count
        count = 0
        for rows in _pages(store, place):
            yield [_with_dropped(store, change, rows) for change in coalesced(rows)]
            count += len(rows)
            on_rows(len(rows))

    store.index.rebuild(stretches, place)
    store.quotas.recount()
    return count


def _pages(store: Store, place: int) -> Iterator[Sequence[SessionNotification]]:
    after = 0
    while rows := store.recorder.select_notifications(
        after, PAGE, place, inclusive_of_start=False, max_bytes=PAGE_BYTES
    ):
        yield rows
        after = rows[-1].id


def _with_dropped(
    store: Store, change: IndexChange, rows: Sequence[SessionNotification]
) -> IndexChange:
    """Return a change with what results resolved whose bodies are gone: only the old ledger knows.

    An erasure is taken up by those who have noted that it began, which an index anew does not undo.
    """
    change = change._replace(erasing=False)
    dropped = [each for each in rows if row_id(each) == change.aggregate_id and _is_dropped(each)]
    entry = store.index.entry(change.aggregate_id) if dropped and not change.deleted else None
    if entry is None:
        return change
    known = entry.call_ids()
    seqs = [Envelope.FromString(each.state).seq for each in dropped]
    lines = [Line(seq, LineKind.RESOLVED, known[seq]) for seq in seqs if seq in known]
    calls = [*change.calls, *map(LoggedCall, lines)]
    return change._replace(calls=tuple(sorted(calls, key=lambda call: call.line.seq)))


def _is_dropped(row: SessionNotification) -> bool:
    try:
        envelope = Envelope.FromString(row.state)
    except ValueError:
        return False
    return envelope.type == EventType.TOOL_RESULT and envelope.dropped and not envelope.body
