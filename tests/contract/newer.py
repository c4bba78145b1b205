"""Rows as a newer release would write them, with types, fields and facts that this one lacks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing

from foldlog.application.domain import Session
from foldlog.application.identity import DEFAULT_TENANT, aggregate_id
from foldlog.application.seal import seal
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store, open_store
from foldlog.v1 import event_pb2

from tests.contract.said import user

# Fields that the messages do not have: number 11 of the oneof in EventBody, 12 of that in Fact,
# 200 and 1000 of others; each of wire type 2.
NEW_KIND = b"\x5a\x05inner"
NEW_FACT = b"\x62\x03pin"
NEW_FIELD = b"\xc2\x0c\x05newer"
NEW_BODY_FIELD = b"\xc2\x3e\x04more"
TYPE = 99
REASON = 7

MARKED = user("known").body.SerializeToString() + NEW_BODY_FIELD
UNKNOWN = NEW_KIND + event_pb2.EventBody(group="g", extra_json="{}").SerializeToString()
HEADER = event_pb2.EventBody(
    request_header=event_pb2.RequestHeader(model="m", reason=REASON)  # type: ignore[arg-type]
).SerializeToString()
FACT = StoredFact(fact=event_pb2.Fact.FromString(NEW_FACT)).SerializeToString()


def write_rows(url: str, session_ids: Iterable[str]) -> None:
    """Write on, as a newer release: a message, an unknown event, a header and an unknown fact."""
    with closing(open_store(url)) as store:
        for session_id in session_ids:
            store.recorder.insert_events([*_rows(store, session_id)])


def _rows(store: Store, session_id: str) -> Iterator[SessionStoredEvent]:
    id_ = aggregate_id(DEFAULT_TENANT, session_id)
    stored = store.recorder.select_events(id_)
    last = Envelope.FromString(stored[-1].state)
    key = StoredFact.FromString(Envelope.FromString(stored[0].state).body).origin.key
    version, chain, seq = stored[-1].originator_version, last.chain, last.seq + 1
    for topic, type_, body in (
        (Session.Event.TOPIC, 2, MARKED),
        (Session.Event.TOPIC, TYPE, UNKNOWN),
        (Session.Event.TOPIC, 10, HEADER),
        ("pinned", 0, FACT),
    ):
        version += 1
        envelope = Envelope.FromString(NEW_FIELD)
        envelope.seq, envelope.type, envelope.written_ns = seq, type_, time.time_ns()
        seal(envelope, body, key, chain, id_, version, topic)
        yield SessionStoredEvent(id_, version, topic, envelope.SerializeToString())
        chain, seq = envelope.chain, seq + (topic == Session.Event.TOPIC)
