"""Databases of earlier releases: they open, fold, verify and export for ever."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

import pytest
from foldlog.persistence.migrate import migrate, pending
from foldlog.v1 import service_pb2

from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.said import user
from tests.golden.exchanges import Exchange, departures, read, whole
from tests.golden.folders import DIALECTS, HERE, Golden, all_golden, serving
from tests.served import Served

GOLDEN = all_golden()


@pytest.fixture(params=GOLDEN, ids=lambda golden: golden.name)
def golden(request: pytest.FixtureRequest) -> Golden:
    """What a release left in one kind of database."""
    found: Golden = request.param
    return found


@pytest.fixture
def reopened(golden: Golden, tmp_path: Path) -> Iterator[Served]:
    """This release, serving a copy of it."""
    with golden.restored(tmp_path) as (url, objects):
        migrate(url)
        assert pending(url) == []
        with serving(url, objects, tmp_path) as served:
            yield served


def departing(served: Served, exchanges: Iterator[Exchange]) -> list[str]:
    """Return where answers are not what they were."""
    return [
        f"{each.method} {each.requests}: {departure}"
        for each in exchanges
        for departure in departures(whole(each.answers), whole(each.again(served.channel)))
    ]


def exported(golden: Golden) -> dict[str, bytes]:
    """Return what was exported, by session."""
    return {unquote(path.stem): path.read_bytes() for path in golden.exports.iterdir()}


def test_every_release_left_both_kinds_of_databases() -> None:
    releases = {path.parents[1].name for path in HERE.glob("*/*/reads.jsonl")}
    assert "0.1.0" in releases
    assert {golden.name for golden in GOLDEN} == {f"{r}-{d}" for r in releases for d in DIALECTS}


def test_an_old_database_answers_as_it_did_before_and_after_every_write_is_retried(
    golden: Golden, reopened: Served
) -> None:
    assert departing(reopened, read(golden.reads)) == []
    assert departing(reopened, read(golden.writes)) == []
    assert departing(reopened, read(golden.reads)) == []


def test_old_sessions_are_exported_byte_for_byte_and_their_files_imported_alike(
    golden: Golden, reopened: Served
) -> None:
    for session_id, data in exported(golden).items():
        assert Calls(reopened.stub, session_id).export() == data
        copy = fresh_id()
        imported(reopened.stub, data, copy)
        assert Calls(reopened.stub, copy).fold() == Calls(reopened.stub, session_id).fold()


def test_old_sessions_verify_and_go_on(golden: Golden, reopened: Served) -> None:
    for session_id in exported(golden):
        log = Calls(reopened.stub, session_id)
        before = log.fold()
        epoch = log.get().writer_epoch or None
        log.append(user("of a later release"), writer_epoch=epoch)
        fork = log.fork(log.get().next_seq - 2)
        assert fork.fold() == before
        assert [log.verify().intact, fork.verify().intact] == [True, True]


def test_old_sessions_are_the_requests_they_were_outside_of_every_cache(
    golden: Golden, reopened: Served
) -> None:
    options = service_pb2.CheckRequestRequest().options
    options.independent = True
    for session_id in exported(golden):
        log = Calls(reopened.stub, session_id)
        answer = log.check(*log.messages(), options=options)
        assert answer.checked
        assert not answer.HasField("violation")


def test_an_edited_row_of_an_old_database_is_noticed(tmp_path: Path) -> None:
    golden = next(each for each in GOLDEN if each.dialect == "sqlite")
    with golden.restored(tmp_path) as (url, objects):
        with closing(sqlite3.connect(tmp_path / "foldlog.db")) as connection, connection:
            edit = "UPDATE foldlog_events SET state = replace(state, ?, ?) WHERE instr(state, ?)"
            edited = connection.execute(edit, (b"summary", b"invente", b"summary"))
            assert edited.rowcount > 0
        with serving(url, objects, tmp_path) as served:
            assert departing(served, read(golden.reads)) != []
