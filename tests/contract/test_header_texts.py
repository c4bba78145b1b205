"""Large texts of headers are kept once, and nobody sees that."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from foldlog.internal.v1.storage_pb2 import ToolTexts
from foldlog.v1 import check_pb2, event_pb2, service_pb2

from tests.conftest import DURABLE_BACKENDS
from tests.contract.attachments import collect, digest_of, stored
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.refusal import refused
from tests.contract.requesting import (
    begin,
    change_of,
    rebuilt,
    record,
    record_header,
    sent_of,
    verified,
)
from tests.contract.said import header, user
from tests.independent.rebuilding import lines_of, request_at
from tests.served import Served

PROMPT = "You are helpful. Zo\u00eb \u0000 " * 100
TOOL = '{"name": "f", "about": "' + "x" * 700 + '"}'
LARGE = event_pb2.RequestHeader(
    provider="p", model="m", system_prompt=PROMPT, tools_json=[TOOL, TOOL, ' { "n": 1.0 } ']
)


def texts_of(large: event_pb2.RequestHeader) -> list[bytes]:
    """Return the digests under which a header's texts are kept."""
    tools = ToolTexts(tools_json=large.tools_json).SerializeToString()
    return [digest_of(large.system_prompt.encode()), digest_of(tools)]


def unreasoned(found: event_pb2.RequestHeader) -> event_pb2.RequestHeader:
    """Return a header without its reason."""
    copy = event_pb2.RequestHeader()
    copy.CopyFrom(found)
    copy.ClearField("reason")
    return copy


def appended(log: Calls) -> None:
    log.append(event_pb2.NewEvent(body=event_pb2.EventBody(request_header=LARGE)))


def begun(log: Calls) -> None:
    begin(log, header=LARGE)


def restored(log: Calls) -> None:
    log.restore(event_pb2.Event(seq=3, body=event_pb2.EventBody(request_header=LARGE)))


def recorded(log: Calls) -> None:
    record_header(log, LARGE)


@pytest.mark.parametrize("write", [appended, begun, restored, recorded])
def test_a_large_header_reads_as_it_was_sent(log: Calls, write: Callable[[Calls], Any]) -> None:
    write(log)
    (event,) = log.events(types=[event_pb2.EVENT_TYPE_REQUEST_HEADER])
    assert unreasoned(event.body.request_header) == LARGE
    assert unreasoned(log.header_answer().header) == LARGE
    assert unreasoned(log.fork().header_answer().header) == LARGE
    assert unreasoned(rebuilt(log).about.header) == LARGE
    assert not log.check(header=LARGE).HasField("violation")
    assert sorted(stored(log.stub, *texts_of(LARGE))) == sorted(texts_of(LARGE))
    assert log.verify().intact


def test_watches_give_it_whole(log: Calls) -> None:
    watch = log.watch()
    assert next(watch).HasField("caught_up")
    feed = log.stub.WatchAllEvents(
        service_pb2.WatchAllEventsRequest(from_now=True), timeout=DEADLINE_S
    )
    appended(log)
    log.append(user("a"))
    assert next(watch).event.body.request_header == LARGE
    assert next(watch).event.body.message.text == "a"
    for told in feed:
        if told.session_id == log.session_id and told.event.seq == 0:
            assert told.event.body.request_header == LARGE
            break
    watch.cancel()
    feed.cancel()
    late = log.watch()
    assert next(late).event.body.request_header == LARGE
    late.cancel()


def test_exports_have_it_whole_and_imports_keep_it_once(log: Calls) -> None:
    appended(log)
    log.append(user("a"))
    exported = log.export()
    encoding = request_at(lines_of(exported), 2)
    assert encoding is not None
    assert digest_of(encoding) == rebuilt(log).sha256
    copy = log.other(fresh_id())
    imported(log.stub, exported, copy.session_id)
    renamed = exported.replace(log.session_id.encode(), copy.session_id.encode())
    assert copy.export() == renamed
    assert copy.header_answer().header == LARGE


def test_requests_with_it_are_compared_verified_and_explained(log: Calls) -> None:
    first = begin(log, user("a"), header=LARGE)
    record(log, sent_of(first.request))
    assert not record_header(log, LARGE).wrote
    changed = unreasoned(LARGE)
    changed.tools_json[2] = "{}"
    second = begin(log, header=changed)
    assert list(change_of(log, second.step.step_seq).header_fields) == ["tools_json"]
    assert rebuilt(log, step_seq=0, independent=True) == first.request
    assert not verified(log).mismatches
    told = log.violation(user("a").body.message, header=LARGE)
    assert list(told.header_fields) == ["tools_json"]


def test_small_texts_stay_where_they_are(log: Calls) -> None:
    log.append(header(system_prompt="x" * 1_023, tools_json=["1" * 100]))
    prompt = digest_of(b"x" * 1_023)
    assert not stored(log.stub, prompt)
    log.append(header(system_prompt="x" * 1_024))
    assert stored(log.stub, digest_of(b"x" * 1_024))


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_a_large_header_outlives_restarts_and_collections(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, FOLDLOG_OBJECT_GRACE_S="0")
    log = Calls.create(served.stub)
    begin(log, user("a"), header=LARGE)
    served.restart()
    assert collect(served.stub).collected_count == 0
    assert unreasoned(log.header_answer().header) == LARGE


def test_headers_of_many_sessions_have_their_texts_once(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file")
    logs = [Calls.create(served.stub) for _ in range(5)]
    for log in logs:
        appended(log)
        appended(log)
    served.terminate()
    url = served.database_url.removeprefix("sqlite:///")
    connection = sqlite3.connect(url)
    states = connection.execute("SELECT state FROM foldlog_events").fetchall()
    kept = connection.execute("SELECT sha256 FROM foldlog_objects").fetchall()
    connection.close()
    assert not any(PROMPT.encode() in state or TOOL.encode() in state for (state,) in states)
    assert sorted(digest for (digest,) in kept) == sorted(texts_of(LARGE))


def test_a_lost_text_fails_what_needs_it_and_nothing_else(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    log.append(user("a"))
    appended(log)
    log.append(user("b"))
    served.terminate()
    connection = sqlite3.connect(served.database_url.removeprefix("sqlite:///"))
    connection.execute("DELETE FROM foldlog_objects")
    connection.commit()
    connection.close()
    served.start()
    for read in (log.header_answer, log.export, lambda: rebuilt(log)):
        with refused("EVENT_CORRUPT", seq=1):
            read()
    assert log.texts() == ["a", "b"]
    told = log.verify()
    assert [(fault.seq, "header" in fault.description) for fault in told.faults] == [(1, True)] * 2
    assert log.append(user("c")).first_seq == 3
    appended(log)
    assert log.header_answer(1).header == LARGE
    assert log.verify().intact


def test_no_cache_vouches_for_a_damaged_text(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    seq = record(log, sent_of(begin(log, user("a"), header=LARGE).request)).seq
    assert not verified(log).mismatches
    connection = sqlite3.connect(served.database_url.removeprefix("sqlite:///"))
    connection.execute("UPDATE foldlog_objects SET data = zeroblob(length(data))")
    connection.commit()
    connection.close()
    assert [(each.seq, each.reason) for each in verified(log).mismatches] == [
        (seq, "EVENT_CORRUPT")
    ]
    with refused("EVENT_CORRUPT"):
        rebuilt(log, step_seq=0, independent=True)
    with refused("EVENT_CORRUPT"):
        log.check(header=LARGE, options=check_pb2.CheckOptions(independent=True))
