"""How a listing is read: the filters, the page's place, and the statement."""

from __future__ import annotations

import json
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BinasciiError
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any
from uuid import UUID

from foldlog.persistence.columns import labels_of
from foldlog.persistence.index import IndexPage, IndexQuery, IndexRow, Instant, PageTokenError
from foldlog.persistence.queries import Query
from foldlog.persistence.terms import Source, Term, label_terms, term

LARGEST_PAGE = 1_000
PLACE = struct.Struct(">qi16s8s")
COLUMNS = (
    "s.aggregate_id, s.session_id, s.next_seq, s.labels, s.metadata_json, s.create_s, s.create_ns,"
    " s.update_s, s.update_ns, s.parent_session_id, s.parent_at_seq"
)
TERM_TOO = (
    "EXISTS (SELECT 1 FROM foldlog_session_terms o"
    " WHERE o.aggregate_id = t.aggregate_id AND o.source = %s AND o.term = %s)"
)

Clause = tuple[str, list[object]]
Place = tuple[int, int, UUID]


def labels_text(labels: Iterable[tuple[str, str]]) -> str:
    """Return labels as the index keeps them; JSON escapes NUL, which PostgreSQL's text refuses."""
    return json.dumps(dict(labels), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def wanted_terms(query: IndexQuery) -> list[Term]:
    """Return the terms that a session must have to be listed."""
    terms = label_terms(sorted(query.labels.items()))
    if query.parent_session_id:
        terms.append(term(Source.PARENT, query.parent_session_id))
    if query.custom_kind and query.custom_key:
        terms.append(term(Source.KIND_AND_KEY, query.custom_kind, query.custom_key))
    elif query.custom_kind:
        terms.append(term(Source.KIND, query.custom_kind))
    elif query.custom_key:
        terms.append(term(Source.KEY, query.custom_key))
    return terms


def listing(query: IndexQuery, key: Callable[[UUID], object]) -> Query:
    """Select one row more than the page holds, so that it shows whether another follows.

    Read in order from the index of the first term, or of the sessions, so that a page costs what it
    returns, however many sessions there are.
    """
    terms = wanted_terms(query)
    first, source = ("t", "foldlog_session_terms t JOIN foldlog_sessions s USING (aggregate_id)")
    if not terms:
        first, source = "s", "foldlog_sessions s"
    clauses: list[Clause] = [(f"{first}.tenant = %s AND NOT s.deleted", [query.tenant])]
    if query.without_session_id:
        clauses.append(("s.session_id <> %s", [query.without_session_id]))
    clauses += _term_clauses(terms)
    clauses += _time_clauses(query, first)
    if query.page_token:
        s, ns, last = read_token(query)
        clauses.append((f"({_order(first)}) < (%s, %s, %s)", [s, ns, key(last)]))
    sql = (
        f"SELECT {COLUMNS} FROM {source} WHERE {' AND '.join(text for text, _ in clauses)}"
        f" ORDER BY {_order(first, ' DESC')} LIMIT %s"
    )
    parameters = [value for _, values in clauses for value in values]
    return sql, [*parameters, page_size(query) + 1]


def _order(table: str, direction: str = "") -> str:
    return ", ".join(f"{table}.{c}{direction}" for c in ("create_s", "create_ns", "aggregate_id"))


def _term_clauses(terms: Sequence[Term]) -> Iterator[Clause]:
    for number, (source, digest) in enumerate(terms):
        if number == 0:
            yield "t.source = %s AND t.term = %s", [int(source), digest]
        else:
            yield TERM_TOO, [int(source), digest]


def _time_clauses(query: IndexQuery, first: str) -> Iterator[Clause]:
    created = f"({first}.create_s, {first}.create_ns)"
    updated = "(s.update_s, s.update_ns)"
    for test, limit in (
        (f"{created} >= (%s, %s)", query.created_from),
        (f"{created} < (%s, %s)", query.created_before),
        (f"{updated} >= (%s, %s)", query.updated_from),
    ):
        if limit is not None:
            yield test, [limit.s, limit.ns]


def page_size(query: IndexQuery) -> int:
    """Return how many sessions the page holds at most."""
    return max(1, min(query.page_size, LARGEST_PAGE))


def page(query: IndexQuery, rows: Sequence[IndexRow]) -> IndexPage:
    """Cut what `listing` selected to the page."""
    size = page_size(query)
    shown = tuple(rows[:size])
    return IndexPage(shown, _token(query, shown[-1]) if len(rows) > size else "")


def _token(query: IndexQuery, last: IndexRow) -> str:
    s, ns = last.create_time
    place = PLACE.pack(s, ns, last.aggregate_id.bytes, _fingerprint(query))
    return urlsafe_b64encode(place).decode()


def read_token(query: IndexQuery) -> Place:
    """Return the place after which the page begins. Raises PageTokenError."""
    try:
        s, ns, key, fingerprint = PLACE.unpack(urlsafe_b64decode(query.page_token))
    except (BinasciiError, struct.error, ValueError):
        raise PageTokenError("the page token is malformed") from None
    if fingerprint != _fingerprint(query):
        raise PageTokenError("the page token is of a listing with other filters")
    return s, ns, UUID(bytes=key)


def _fingerprint(query: IndexQuery) -> bytes:
    filters = replace(query, page_size=0, page_token="", labels={})
    return sha256(repr((filters, sorted(query.labels.items()))).encode()).digest()[:8]


def row(aggregate_id: UUID, columns: Sequence[Any]) -> IndexRow:
    """Return what COLUMNS hold, the aggregate id given apart."""
    session_id, next_seq, labels, metadata, s, ns, updated_s, updated_ns, *parent = columns
    times = Instant(s, ns), Instant(updated_s, updated_ns)
    return IndexRow(
        aggregate_id, session_id, next_seq, labels_of(labels), metadata, *times, *parent
    )
