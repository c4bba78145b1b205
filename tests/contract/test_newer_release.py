"""What a newer release wrote passes through this one untouched."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from foldlog.v1 import event_pb2, service_pb2

from tests.conftest import DURABLE_BACKENDS, Servers
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.newer import HEADER, MARKED, NEW_FACT, REASON, TYPE, UNKNOWN, write_rows
from tests.contract.refusal import refused
from tests.contract.requesting import begin, record_header
from tests.contract.said import assistant, replacing, user

STORED = [user("before").body.SerializeToString(), MARKED, UNKNOWN, HEADER]
BODIES = [event_pb2.EventBody.FromString(body) for body in STORED]
SESSIONS = 10


@pytest.fixture(scope="module", params=DURABLE_BACKENDS)
def logs(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Calls]:
    """Sessions of a store that a newer release has written to."""
    served = servers.fresh(request.param)
    logs = [Calls.create(served.stub, labels={"team": "red"}) for _ in range(SESSIONS)]
    for log in logs:
        log.append(user("before"))
    served.terminate()
    write_rows(served.database_url, [log.session_id for log in logs])
    served.start()
    return iter(logs)


@pytest.fixture
def log(logs: Iterator[Calls]) -> Calls:
    """A session whose seqs 1 to 3 and last fact a newer release wrote."""
    return next(logs)


def bodies(log: Calls) -> list[event_pb2.EventBody]:
    """Return the bodies of a log as they are read, with what this release does not know."""
    return [each.body for each in log.events()]


def test_events_are_read_as_they_were_written(log: Calls) -> None:
    assert bodies(log) == BODIES
    assert [each.type for each in log.events()] == [2, 2, 0, 10]
    assert log.texts() == ["before", "known"]
    assert log.header_answer().header.reason == REASON
    assert log.get().labels == {"team": "red"}


def test_the_chain_holds_over_fields_and_facts_that_this_release_lacks(log: Calls) -> None:
    log.append(replacing(assistant("after"), 0, 1))
    verdict = log.verify()
    assert (verdict.intact, verdict.row_count) == (True, 7)
    assert log.fork().verify().intact


def test_the_log_goes_on(log: Calls) -> None:
    assert log.append(user("after")).first_seq == 4
    assert record_header(log, event_pb2.RequestHeader(model="m")).wrote is False
    assert begin(log, user("q")).request.texts == ["before", "known", "after", "q"]
    log.rewind(2)
    assert log.texts() == ["before", "known"]
    assert bodies(log)[:4] == BODIES


def test_a_fork_has_them(log: Calls) -> None:
    child = log.fork(2)
    assert bodies(child) == BODIES[:3]
    assert child.append(user("in the fork")).first_seq == 3


def test_watches_tell_them(log: Calls) -> None:
    events = []
    for answer in log.watch():
        if answer.HasField("caught_up"):
            break
        events.append(answer.event.body)
    assert events == BODIES


def test_the_feed_tells_the_unknown_fact(log: Calls) -> None:
    told = []
    request = service_pb2.WatchAllEventsRequest()
    for answer in log.stub.WatchAllEvents(request, timeout=DEADLINE_S):
        if answer.HasField("caught_up"):
            break
        if answer.session_id == log.session_id:
            told.append(answer)
    assert [each.event.body for each in told[1:-1]] == BODIES
    assert NEW_FACT in told[-1].fact.SerializeToString()


def test_exports_and_imports_keep_them_byte_for_byte(log: Calls) -> None:
    exported = log.export()
    copy = log.other(fresh_id("copy"))
    imported(log.stub, exported, copy.session_id)
    assert bodies(copy) == BODIES
    assert copy.verify().intact
    assert copy.export().splitlines()[1:] == exported.splitlines()[1:]
    lines = [json.loads(line) for line in exported.splitlines()[1:-1]]
    assert [base64.b64decode(each["body"]) for each in lines] == STORED
    types = [each["type"] for each in lines]
    assert types == ["user_message", "user_message", f"type_{TYPE}", "request_header"]


def test_a_known_type_under_its_number_is_imported_and_an_unknown_one_needs_it(log: Calls) -> None:
    exported = log.export()
    numbered = exported.replace(b'"type":"user_message"', b'"type":"type_2"')
    copy = log.other(fresh_id("copy"))
    imported(log.stub, numbered, copy.session_id)
    assert copy.fold() == log.fold()
    for wrong in (b"type_13", b"type_x", b"custom", b"type_0"):
        with refused("INVALID_FIELD"):
            imported(log.stub, exported.replace(b"type_99", wrong), fresh_id("copy"))


def test_what_a_worker_appends_is_still_judged(log: Calls) -> None:
    for body in (UNKNOWN, HEADER):
        with refused("INVALID_FIELD"):
            log.append(event_pb2.NewEvent(body=event_pb2.EventBody.FromString(body)))


def test_a_snapshot_drops_no_unknown_event(log: Calls) -> None:
    log.append(replacing(user("summary"), 0, 1))
    assert log.snapshot().dropped_count == 2
    assert bodies(log)[2:4] == BODIES[2:]
    assert log.verify().intact
