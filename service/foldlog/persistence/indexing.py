"""What applying changes to the session index writes, as rows, whatever the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from foldlog.persistence.index import IndexChange, SessionCreated
from foldlog.persistence.ledger import Calls
from foldlog.persistence.listing import labels_text
from foldlog.persistence.rows import AUDIT_SESSION
from foldlog.persistence.terms import Source, custom_terms, label_terms, term

SessionRow = tuple[str, UUID, str, str | None, int | None, str, str, int, int, int, int]
UpdateRow = tuple[str | None, str | None, int | None, int | None, int | None, bool, UUID]
TermRow = tuple[int, bytes, UUID]
LineageRow = tuple[UUID, UUID, int]


@dataclass(slots=True)
class Writes:
    """Rows to write, in this order: of sessions, their terms, their lineage, their erasures."""

    sessions: list[SessionRow] = field(default_factory=list)
    updates: list[UpdateRow] = field(default_factory=list)
    stripped: list[UUID] = field(default_factory=list)
    unlabelled: list[UUID] = field(default_factory=list)
    terms: list[TermRow] = field(default_factory=list)
    lineage: list[LineageRow] = field(default_factory=list)
    erasing: list[tuple[str, UUID]] = field(default_factory=list)


def writes(changes: Sequence[IndexChange]) -> Writes:
    """Return the rows that the changes write. At most one change per session."""
    out = Writes()
    for change in changes:
        if change.created is not None:
            out.sessions.append(_session(change, change.created))
            out.lineage.extend((change.aggregate_id, *each) for each in change.created.segments)
        out.updates.append(_update(change))
        if change.erasing:
            out.erasing.append((change.tenant, change.aggregate_id))
        if change.deleted:
            out.stripped.append(change.aggregate_id)
            continue
        if change.labels is not None:
            out.unlabelled.append(change.aggregate_id)
        out.terms.extend((*each, change.aggregate_id) for each in sorted(set(_terms(change))))
    return out


def calls_of(changes: Sequence[IndexChange]) -> Calls:
    """Return what was logged of calls, by session, but for sessions that are deleted now."""
    return {
        change.aggregate_id: (change.tenant, change.calls)
        for change in changes
        if change.calls and not change.deleted
    }


def uses_of(changes: Sequence[IndexChange]) -> Iterator[tuple[str, int, int]]:
    """Yield (tenant, sessions, bytes) that came or went with each change.

    The audit log is no session of the tenant's making.
    """
    for change in changes:
        is_new = change.created is not None and change.created.session_id != AUDIT_SESSION
        yield change.tenant, is_new - change.deleted, change.size_bytes


def _session(change: IndexChange, created: SessionCreated) -> SessionRow:
    return (
        change.tenant,
        change.aggregate_id,
        created.session_id,
        created.parent_session_id,
        created.parent_at_seq,
        labels_text(created.labels.items()),
        created.metadata_json,
        *created.create_time,
        *created.create_time,
    )


def _update(change: IndexChange) -> UpdateRow:
    labels = None if change.labels is None else labels_text(change.labels.items())
    s, ns = change.update_time or (None, None)
    values = (labels, change.metadata_json, change.next_seq, s, ns)
    return (*values, change.deleted, change.aggregate_id)


def _terms(change: IndexChange) -> Iterator[tuple[int, bytes]]:
    labels = change.labels
    if change.created is not None:
        labels = change.created.labels if labels is None else labels
        if change.created.parent_session_id is not None:
            yield term(Source.PARENT, change.created.parent_session_id)
    yield from label_terms((labels or {}).items())
    for kind, key in change.custom:
        yield from custom_terms(kind, key)
