"""Damage to stored rows: told where it is needed, and nowhere else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from foldlog.v1 import service_pb2

from tests.contract.attachments import collect, put, stored
from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.recovering import logs_call
from tests.contract.refusal import refusal_of, refused
from tests.contract.said import user, user_message
from tests.served import Served

# A session's first row is the fact that it was created, so seq 2 is version 4.
DAMAGED_SEQ, VERSION = 2, 4
TEXT = b"the text of seq 2"
READ = "SELECT originator_id, state FROM foldlog_events WHERE originator_version = {}"
WRITE = (
    "UPDATE foldlog_events SET state = {0} WHERE originator_id = {0} AND originator_version = {0}"
)


@dataclass
class Damaged:
    """A session with a damaged row, and its neighbour."""

    log: Calls
    other: Calls


def damage(url: str, spoil: Callable[[bytes], bytes]) -> None:
    """Spoil the row that holds the text."""
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
        mark = "?"
    else:
        import psycopg

        from tests.postgres import owner_url

        connection, mark = psycopg.connect(owner_url(url)), "%s"
    rows = connection.execute(READ.format(mark), (VERSION,)).fetchall()
    ((originator_id, state),) = [(o, bytes(s)) for o, s in rows if TEXT in bytes(s)]
    connection.execute(WRITE.format(mark), (spoil(state), originator_id, VERSION))
    connection.commit()
    connection.close()


SPOILS: dict[str, Callable[[bytes], bytes]] = {
    "another text": lambda state: state.replace(TEXT, TEXT.upper()),
    "no envelope": lambda state: b"\xff" * len(state),
    "cut short": lambda state: state[: len(state) // 2],
    "nothing": lambda state: b"",
}


@pytest.fixture(params=["sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """A store that can be reached from outside."""
    name: str = request.param
    return name


@pytest.fixture(params=list(SPOILS))
def damaged(serve: Callable[..., Served], backend: str, request: pytest.FixtureRequest) -> Damaged:
    """Two sessions, restarted after the row of seq 2 of one was damaged."""
    served = serve(backend, FOLDLOG_OBJECT_GRACE_S="0")
    log, other = Calls.create(served.stub), Calls.create(served.stub)
    for i in range(5):
        log.append(user(f"the text of seq {i}"))
    other.append(user("a"))
    served.terminate()
    damage(served.database_url, SPOILS[request.param])
    served.start()
    return Damaged(log, other)


def test_damage_is_told_where_it_is_needed_and_nowhere_else(damaged: Damaged) -> None:
    log = damaged.log
    for read in (log.fold, log.events, log.export, lambda: log.check(user_message("x"))):
        with refused("EVENT_CORRUPT", session_id=log.session_id, seq=DAMAGED_SEQ):
            read()
    assert [each.seq for each in log.events(DAMAGED_SEQ + 1)] == [3, 4]
    assert log.surface(DAMAGED_SEQ - 1) == [0, 1]
    assert damaged.other.texts() == ["a"]
    assert damaged.other.append(user("b")).first_seq == 1


def test_verifying_names_the_damage(damaged: Damaged) -> None:
    answer = damaged.log.verify()
    assert not answer.intact
    assert any(f.seq == DAMAGED_SEQ or not f.HasField("seq") for f in answer.faults)
    assert damaged.other.verify().intact


def test_no_attachment_is_collected_that_a_damaged_row_may_name(damaged: Damaged) -> None:
    stub = damaged.log.stub
    digest = put(stub, b"perhaps named").sha256
    with refused("EVENT_CORRUPT", session_id=damaged.log.session_id):
        collect(stub)
    assert stored(stub, digest) == {digest: 13}


# What SQLite lets stand in a column: any value whatever its type is said to be.
RUBBISH = {
    "a number for a state": "UPDATE foldlog_events SET state = -1 WHERE originator_version = 4",
    "no topic": "UPDATE foldlog_events SET topic = '' WHERE originator_version = 4",
    "an id of another size": (
        "UPDATE foldlog_events SET originator_id = x'00' WHERE originator_version = 4"
    ),
    "another version": "UPDATE foldlog_events SET originator_version = 9 WHERE topic = 'created'",
    "a version that is no number": (
        "UPDATE foldlog_events SET originator_version = 'x' WHERE originator_version = 4"
    ),
    "a kind of call that is none": "UPDATE foldlog_call_ledger SET kind = 0",
    "labels that are none": "UPDATE foldlog_sessions SET labels = ' '",
}


@pytest.mark.parametrize("statement", list(RUBBISH.values()), ids=list(RUBBISH))
def test_rubbish_in_a_column_is_told_as_damage_and_others_are_listed(
    serve: Callable[..., Served], statement: str
) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    for text in "abc":
        log.append(user(text))
    log.append(logs_call("c1"))
    served.stub.ListSessions(service_pb2.ListSessionsRequest())  # waits until they are listed
    served.terminate()
    with closing(sqlite3.connect(served.database_url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()
    served.start()
    reads: tuple[Callable[[], object], ...] = (
        *(log.get, log.fold, log.events, log.export, log.verify, log.header_answer),
        lambda: log.append(user("d")),
        lambda: log.append(logs_call("c1")),
        lambda: served.stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S),
        lambda: next(served.stub.WatchAllEvents(service_pb2.WatchAllEventsRequest())),
    )
    assert {code_of(read) for read in reads} <= HARMLESS
    other = Calls.create(served.stub, labels={"whose": "another's"})
    listing = service_pb2.ListSessionsRequest(labels={"whose": "another's"})
    listed = served.stub.ListSessions(listing, timeout=DEADLINE_S).sessions
    assert [each.session_id for each in listed] == [other.session_id]


HARMLESS = {grpc.StatusCode.OK, grpc.StatusCode.DATA_LOSS, grpc.StatusCode.NOT_FOUND}


def code_of(call: Callable[[], object]) -> grpc.StatusCode:
    """Return the code that a call ends with."""
    try:
        call()
    except grpc.RpcError as error:
        return refusal_of(error).code
    return grpc.StatusCode.OK
