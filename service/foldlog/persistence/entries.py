"""A session's whole entry in the index, as an audit compares it with the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from foldlog.persistence.index import IndexChange
from foldlog.persistence.indexing import calls_of, writes
from foldlog.persistence.ledger import moved_on
from foldlog.persistence.listing import labels_text
from foldlog.persistence.queries import Query

NAMES = (
    *("tenant", "session_id", "parent_session_id", "parent_at_seq", "labels", "metadata_json"),
    *("next_seq", "create_s", "create_ns", "update_s", "update_ns", "deleted"),
)
SESSION = f"SELECT {', '.join(NAMES)} FROM foldlog_sessions WHERE aggregate_id = %s"
TERMS = "SELECT tenant, source, term FROM foldlog_session_terms WHERE aggregate_id = %s"
LINEAGE = "SELECT ancestor_id, to_version FROM foldlog_lineage WHERE aggregate_id = %s"
CALLS = (
    "SELECT tenant, seq, kind, call_id, to_seq, name, idempotency_key, time_s, time_ns, unresolved"
    " FROM foldlog_call_ledger WHERE aggregate_id = %s ORDER BY seq"
)

Call = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What the tables of the index hold of a session, deleted or not."""

    columns: Mapping[str, object]
    terms: frozenset[tuple[str, int, bytes]]
    lineage: frozenset[tuple[UUID, int]]
    calls: tuple[Call, ...]

    def call_ids(self) -> dict[int, str]:
        """Return the call that each line of the ledger is about, by seq."""
        return {call[1]: call[3].decode(errors="replace") for call in self.calls}


def entry_of(change: IndexChange) -> IndexEntry:
    """Return the entry of a session whose whole log comes to one change."""
    created = change.created
    assert created is not None
    labels = created.labels if change.labels is None else change.labels
    metadata = created.metadata_json if change.metadata_json is None else change.metadata_json
    parent = created.parent_session_id, created.parent_at_seq
    about = change.tenant, created.session_id, *parent, labels_text(labels.items()), metadata
    times = *created.create_time, *(change.update_time or created.create_time)
    columns = dict(zip(NAMES, (*about, change.next_seq, *times, change.deleted), strict=True))
    rows, calls = writes([change]), moved_on(calls_of([change]), {})
    return IndexEntry(
        columns,
        frozenset((change.tenant, int(source), term) for source, term, _ in rows.terms),
        frozenset((ancestor, to) for _, ancestor, to in rows.lineage),
        tuple((tenant, *rest) for tenant, _, *rest in calls.lines),
    )


def read_entry(
    rows: Callable[[Query], Sequence[Sequence[Any]]],
    key: object,
    id_of: Callable[[Any], UUID],
) -> IndexEntry | None:
    """Read a session's entry; None if there is none, or if it does not stand still."""
    for _ in range(10):
        found = rows((SESSION, [key]))
        terms, lineage, calls = (rows((sql, [key])) for sql in (TERMS, LINEAGE, CALLS))
        # Every row that is applied changes the session's own, at least its times.
        if rows((SESSION, [key])) == found:
            break
    if not found:
        return None
    columns = dict(zip(NAMES, found[0], strict=True))
    return IndexEntry(
        columns | {"deleted": bool(columns["deleted"])},
        frozenset((tenant, source, bytes(term)) for tenant, source, term in terms),
        frozenset((id_of(ancestor), to) for ancestor, to in lineage),
        tuple(_call(each) for each in calls),
    )


def _call(row: Sequence[Any]) -> Call:
    tenant, seq, kind, call_id, to_seq, name, key, s, ns, unresolved = row
    texts = bytes(call_id), to_seq, bytes(name), bytes(key)
    return (tenant, seq, kind, *texts, s, ns, bool(unresolved))
