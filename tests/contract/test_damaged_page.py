"""A damaged page of a SQLite file: told where it is needed, and nothing is written over it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from foldlog.cli.doctor.sqlite import sqlite_file
from foldlog.v1 import service_pb2

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refusal_of, refused
from tests.contract.said import user
from tests.served import Served

MARK = "the text of seq {} "
EVENTS, DAMAGED = 40, 20
ROOT = "SELECT rootpage FROM sqlite_schema WHERE name = ?"


@dataclass
class DatabaseFile:
    """The database file of a server that is stopped."""

    path: Path

    @property
    def page_bytes(self) -> int:
        """The size of a page."""
        return int.from_bytes(self.path.read_bytes()[16:18])

    def page_of(self, text: str) -> int:
        """Return the page that holds a text."""
        return self.path.read_bytes().index(text.encode()) // self.page_bytes

    def root_of(self, name: str) -> int:
        """Return the first page of a table or an index."""
        with closing(sqlite3.connect(self.path)) as connection:
            return int(connection.execute(ROOT, [name]).fetchone()[0]) - 1

    def damage(self, page: int) -> bytes:
        """Write noise over a page and return it."""
        noise = os.urandom(self.page_bytes)
        with self.path.open("r+b") as file:
            file.seek(page * len(noise))
            file.write(noise)
        return noise

    def holds(self, noise: bytes, page: int) -> bool:
        """Tell whether a page is that noise yet."""
        start = page * len(noise)
        return self.path.read_bytes()[start : start + len(noise)] == noise


@dataclass
class Damaged:
    """A session with a damaged page, and one that was written elsewhere."""

    served: Served
    file: DatabaseFile
    log: Calls
    other: Calls


@pytest.fixture
def damaged(serve: Callable[..., Served]) -> Damaged:
    """Two sessions of a server that is stopped."""
    served = serve("sqlite-file")
    log, other = Calls.create(served.stub), Calls.create(served.stub)
    log.append(*(user(MARK.format(number) * 100) for number in range(EVENTS)))
    other.append(*(user("elsewhere " * 200) for _ in range(EVENTS)))
    served.terminate()
    return Damaged(served, DatabaseFile(Path(served.database_url[10:])), log, other)


def test_reads_of_the_rest_go_on_and_the_damage_stays_as_it_is(damaged: Damaged) -> None:
    log, other = damaged.log, damaged.other
    page = damaged.file.page_of(MARK.format(DAMAGED))
    noise = damaged.file.damage(page)
    damaged.served.start()
    with refused("EVENT_CORRUPT", session_id=log.session_id) as told:
        log.fold()
    lost = int(told.facts["seq"])
    assert 0 < lost <= DAMAGED
    assert log.surface(lost - 1) == [*range(lost)]
    assert [each.seq for each in log.events(EVENTS - 5)] == [*range(EVENTS - 5, EVENTS)]
    for read in (log.events, log.export, lambda: log.check(log.messages(0)[0])):
        with refused("EVENT_CORRUPT", session_id=log.session_id, seq=lost):
            read()
    verdict = log.verify()
    assert verdict.faults[0].seq == lost
    assert verdict.row_count == EVENTS + 1
    assert {each.part for each in verdict.faults} == {service_pb2.AUDITED_PART_LOG}
    heads = damaged.served.stub.ListHeads(service_pb2.ListHeadsRequest(), timeout=DEADLINE_S)
    assert [each.next_seq for page in heads for each in page.heads] == [EVENTS, EVENTS]
    assert log.append(user("after")).first_seq == EVENTS
    assert other.append(user("after")).first_seq == EVENTS
    assert len(other.fold()) == EVENTS + 1
    assert other.verify().intact
    listing = service_pb2.ListSessionsRequest()
    listed = damaged.served.stub.ListSessions(listing, timeout=DEADLINE_S).sessions
    assert {each.next_seq for each in listed} == {EVENTS + 1}
    damaged.served.terminate()
    assert damaged.file.holds(noise, page)
    assert "is damaged" in str([*sqlite_file(damaged.file.path)])


def test_the_feed_tells_the_damage_and_goes_on_behind_it(damaged: Damaged) -> None:
    damaged.file.damage(damaged.file.page_of(MARK.format(DAMAGED)))
    stub = damaged.served.start().stub
    cursor, told, lost = "", 0, 0
    while True:
        request = service_pb2.WatchAllEventsRequest(after_cursor=cursor)
        try:
            for answer in stub.WatchAllEvents(request, timeout=DEADLINE_S):
                cursor, told = answer.cursor, told + answer.HasField("event")
                if answer.HasField("caught_up"):
                    break
            break
        except grpc.RpcError as error:
            refusal = refusal_of(error)
            assert refusal.reason == "EVENT_CORRUPT"
            cursor, lost = refusal.facts["cursor"], lost + 1
    assert lost > 0
    assert told + lost == 2 * EVENTS


def test_a_damaged_index_is_told_as_damage_of_the_database(damaged: Damaged) -> None:
    damaged.file.damage(damaged.file.root_of("foldlog_events_version"))
    damaged.served.start()
    for call in (damaged.log.fold, lambda: damaged.other.append(user("x"))):
        with refused("STORE_DAMAGED"):
            call()
    damaged.served.terminate()
    assert "is damaged" in str([*sqlite_file(damaged.file.path)])
