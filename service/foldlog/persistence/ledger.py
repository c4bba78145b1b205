"""The tool-effect ledger as the session index keeps it: what is written, and how it is listed."""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BinasciiError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from foldlog.core.ledger import Ledger, Line, LineKind
from foldlog.persistence.queries import Query
from foldlog.persistence.rows import DEFAULT_TENANT
from foldlog.persistence.terms import label_terms

PLACE = struct.Struct(">qi16sq16s")
NO_SESSION = UUID(int=0)
LINES = "aggregate_id, seq, kind, call_id, to_seq, unresolved"
COLUMNS = (
    "l.aggregate_id, s.session_id, l.seq, l.call_id, l.name, l.idempotency_key, l.time_s, l.time_ns"
)
HAS_TERM = (
    "EXISTS (SELECT 1 FROM foldlog_session_terms t"
    " WHERE t.aggregate_id = l.aggregate_id AND t.source = %s AND t.term = %s)"
)
ORDER = "l.time_s, l.time_ns, l.aggregate_id, l.seq"

StoredLines = Mapping[UUID, Sequence[tuple[Line, bool]]]
LineRow = tuple[str, UUID, int, int, bytes, int | None, bytes, bytes, int, int, bool]


class CallTokenError(ValueError):
    """A page token was not given by this listing."""


class LoggedCall(NamedTuple):
    """A line of the ledger, and on a dispatch what a listing shows of it.

    A time is whole seconds since 1970, UTC, and nanoseconds.
    """

    line: Line
    name: str = ""
    idempotency_key: str = ""
    time: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call that was dispatched and of which nothing more is known."""

    aggregate_id: UUID
    session_id: str
    seq: int
    call_id: str
    name: str
    idempotency_key: str
    time: tuple[int, int]

    @property
    def size_bytes(self) -> int:
        """About what it takes on the wire."""
        texts = (self.session_id, self.call_id, self.name, self.idempotency_key)
        return 50 + sum(len(text.encode()) for text in texts)


@dataclass(frozen=True, slots=True)
class CallQuery:
    """Which unresolved calls to list: all of a tenant, or those of one session.

    With labels, only those of sessions that bear them all.
    """

    page_size: int
    page_token: str = ""
    aggregate_id: UUID | None = None
    tenant: str = DEFAULT_TENANT
    labels: frozenset[tuple[str, str]] = frozenset()


@dataclass(slots=True)
class LedgerWrites:
    """Rows to write: new lines, and seqs that became unresolved or no longer are."""

    lines: list[LineRow] = field(default_factory=list)
    changed: list[tuple[bool, UUID, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Concerned:
    """Sessions whose stored lines are needed: the unresolved ones, or all for a rewind."""

    waiting: tuple[UUID, ...]
    whole: tuple[UUID, ...]


Calls = Mapping[UUID, tuple[str, Sequence[LoggedCall]]]


def concerned(calls: Calls) -> Concerned:
    """Return what has to be read before the ledgers of these sessions are moved on."""
    rewound = {
        key
        for key, (_, logged) in calls.items()
        if any(each.line.kind is LineKind.REWOUND for each in logged)
    }
    waiting = tuple(key for key in calls if key not in rewound)
    return Concerned(waiting, tuple(key for key in calls if key in rewound))


def moved_on(calls: Calls, stored: StoredLines) -> LedgerWrites:
    """Return what is written when these calls, by session with its tenant, are taken in."""
    writes = LedgerWrites()
    for key, (tenant, logged) in calls.items():
        ledger = Ledger(stored.get(key, ()))
        for each in logged:
            ledger.take(each.line)
        of_seq = {each.line.seq: each for each in logged}
        for line in ledger.added:
            is_waiting = line.seq in ledger.unresolved
            writes.lines.append(_row(tenant, key, of_seq[line.seq], is_waiting))
        writes.changed += [(now, key, seq) for seq, now in ledger.changed.items()]
    return writes


def _row(tenant: str, key: UUID, logged: LoggedCall, is_waiting: bool) -> LineRow:
    # Texts as bytes: PostgreSQL's text refuses NUL.
    line = logged.line
    texts = line.call_id.encode(), logged.name.encode(), logged.idempotency_key.encode()
    call_id, name, idempotency_key = texts
    about = (int(line.kind), call_id, line.to_seq, name, idempotency_key)
    return (tenant, key, line.seq, *about, *logged.time, is_waiting)


def stored_lines(rows: Sequence[Sequence[Any]], key: Callable[[Any], UUID]) -> StoredLines:
    """Return what LINES hold, by session, in the order of the log."""
    found: dict[UUID, list[tuple[Line, bool]]] = {}
    for aggregate_id, seq, kind, call_id, to_seq, is_waiting in rows:
        line = Line(seq, LineKind(kind), bytes(call_id).decode(), to_seq)
        found.setdefault(key(aggregate_id), []).append((line, bool(is_waiting)))
    return found


def listing(query: CallQuery, key: Callable[[UUID], object]) -> Query:
    """Select one row more than the page holds, the oldest first, from the index in that order."""
    clauses, parameters = ["l.unresolved", "NOT s.deleted"], list[object]()
    if query.aggregate_id is None:
        clauses.append("l.tenant = %s")
        parameters.append(query.tenant)
    else:
        clauses.append("l.aggregate_id = %s")
        parameters.append(key(query.aggregate_id))
    for source, digest in label_terms(sorted(query.labels)):
        clauses.append(HAS_TERM)
        parameters += [int(source), digest]
    if query.page_token:
        s, ns, last, seq = read_token(query)
        clauses.append(f"({ORDER}) > (%s, %s, %s, %s)")
        parameters += [s, ns, key(last), seq]
    sql = (
        f"SELECT {COLUMNS} FROM foldlog_call_ledger l JOIN foldlog_sessions s USING (aggregate_id)"
        f" WHERE {' AND '.join(clauses)} ORDER BY {ORDER} LIMIT %s"
    )
    return sql, [*parameters, query.page_size + 1]


def unresolved_call(row: Sequence[Any], key: Callable[[Any], UUID]) -> UnresolvedCall:
    """Return what COLUMNS hold."""
    aggregate_id, session_id, seq, *texts, s, ns = row
    call_id, name, idempotency_key = (bytes(text).decode() for text in texts)
    return UnresolvedCall(
        key(aggregate_id), session_id, seq, call_id, name, idempotency_key, (s, ns)
    )


def token_after(query: CallQuery, last: UnresolvedCall) -> str:
    """Return the token of the page that begins after a call."""
    only = (query.aggregate_id or NO_SESSION).bytes
    place = PLACE.pack(*last.time, last.aggregate_id.bytes, last.seq, only)
    return urlsafe_b64encode(place).decode()


def read_token(query: CallQuery) -> tuple[int, int, UUID, int]:
    """Return the place after which the page begins. Raises CallTokenError."""
    try:
        s, ns, key, seq, only = PLACE.unpack(urlsafe_b64decode(query.page_token))
    except (BinasciiError, struct.error, ValueError):
        raise CallTokenError("the page token is malformed") from None
    if only != (query.aggregate_id or NO_SESSION).bytes:
        raise CallTokenError("the page token is of a listing of other calls")
    return s, ns, UUID(bytes=key), seq
