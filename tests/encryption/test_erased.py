"""What is left of an erased session in the database, and what a crash leaves."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from threading import Thread

import grpc
import pytest
from foldlog.application.erasing import stripped

from tests.contract.attachments import looking, put
from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refused
from tests.contract.said import user
from tests.contract.test_erase import audited
from tests.encryption.files import attachment_files, holds, rows
from tests.encryption.keys import MASTER_KEY
from tests.encryption.test_at_rest import ENCRYPTED, SECRET, grow, told
from tests.served import Served

CYCLES = 6


@pytest.fixture(params=["sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """A store that can be looked at from outside."""
    name: str = request.param
    return name


@pytest.fixture(params=["", MASTER_KEY], ids=["in-clear", "encrypted"])
def served(serve: Callable[..., Served], backend: str, request: pytest.FixtureRequest) -> Served:
    """A server, with and without encryption."""
    return serve(backend, **(ENCRYPTED | {"FOLDLOG_MASTER_KEYS": request.param}))


def test_nothing_of_it_is_left_in_the_database(served: Served) -> None:
    log = told(served.stub)
    grow(log)
    log.fork().append(user(f"child: {SECRET}"))
    log.erase(include_forks=True)
    assert audited(log).intact
    left = rows(served.database_url, "SELECT count(*) FROM foldlog_checkpoints")
    keys = rows(served.database_url, "SELECT count(*) FROM foldlog_session_keys")
    under_way = rows(served.database_url, "SELECT count(*) FROM foldlog_erasures")
    assert [left, keys, under_way] == [[(0,)]] * 3
    assert holds(served, SECRET.encode()) == []
    assert list(attachment_files(served)) == []


def test_nothing_of_it_is_left_in_a_sqlite_file(serve: Callable[..., Served]) -> None:
    """In the file itself too: what is deleted is overwritten, and the log is emptied."""
    served = serve("sqlite-file", **(ENCRYPTED | {"FOLDLOG_MASTER_KEYS": ""}))
    log = told(served.stub)
    grow(log)
    other = Calls.create(served.stub)
    other.append(user("something else"))
    log.erase()
    served.terminate()
    folder = served.output.parent
    for path in folder.glob("foldlog.db*"):
        if path.is_file():
            content = path.read_bytes()
            assert SECRET.encode() not in content, path
    assert b"something else" in (folder / "foldlog.db").read_bytes()


def test_attachments_that_go_later_are_overwritten_in_a_sqlite_file_too(
    serve: Callable[..., Served],
) -> None:
    """While the service runs: nothing else empties the log for it."""
    clear = ENCRYPTED | {"FOLDLOG_MASTER_KEYS": "", "FOLDLOG_OBJECT_GRACE_S": "0.5"}
    served = serve("sqlite-file", **clear)
    log = Calls.create(served.stub)
    log.append(looking(put(served.stub, SECRET.encode()).sha256))
    assert log.erase().pending_attachment_count == 1

    def left() -> list[str]:
        paths = served.output.parent.glob("foldlog.db*")
        return [each.name for each in paths if SECRET.encode() in each.read_bytes()]

    deadline = time.monotonic() + 60
    while left() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left() == []


def test_a_checkpoint_that_comes_after_an_erasure_does_not_stay(
    serve: Callable[..., Served], backend: str
) -> None:
    clear = ENCRYPTED | {"FOLDLOG_MASTER_KEYS": ""}
    for environment in (clear, ENCRYPTED):
        served = serve(backend, "tests.encryption.late_checkpoints", **environment)
        log = told(served.stub)
        grow(log)
        log.erase()
        served.terminate()
        for table in ("foldlog_checkpoints", "foldlog_session_keys"):
            assert rows(served.database_url, f"SELECT count(*) FROM {table}") == [(0,)], table


def test_a_session_stripped_behind_the_services_back_does_not_pass_for_an_erased_one(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    log.append(user("a"), user("b"))
    served.terminate()
    path = served.database_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT notification_id, originator_version, state FROM foldlog_events"
        for place, version, state in connection.execute(sql).fetchall():
            new = stripped(state, version, log.session_id)
            update = "UPDATE foldlog_events SET state = ? WHERE notification_id = ?"
            connection.execute(update, (new, place))
        connection.commit()
    served.start()
    with refused("EVENT_CORRUPT"):
        log.fold()
    assert "no fact says so" in audited(log).faults[-1].description


def test_an_erasure_that_a_crash_interrupts_is_taken_up_again(served: Served) -> None:
    """Killed at random moments; the next start goes on with what had begun."""
    chance = random.Random(7)
    for cycle in range(CYCLES):
        # Attachments of its own: what is being erased may have to be put once more.
        log = told(served.stub, salt=f" {cycle}")
        grow(log, 600)

        def erase(log: Calls = log) -> None:
            with suppress(grpc.RpcError):
                log.erase()

        erasing = Thread(target=erase)
        erasing.start()
        time.sleep(chance.uniform(0, 0.1))  # not to order anything: any moment will do
        served.restart()
        erasing.join()
        with suppress(grpc.RpcError):
            log.erase()
        assert audited(log).intact
    served.restart()
    wait_until_erased(served)
    assert holds(served, SECRET.encode()) == []


def test_a_file_whose_row_went_before_a_crash_goes_too(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, "tests.encryption.dying_removals", **ENCRYPTED)
    log = told(served.stub)
    with suppress(grpc.RpcError):
        log.erase()
    assert served.process.wait(DEADLINE_S) == 1
    ((named,),) = rows(
        served.database_url, "SELECT count(*) FROM foldlog_objects WHERE file IS NOT NULL"
    )
    assert named < len(list(attachment_files(served)))
    served.program = "foldlog"
    served.start()
    wait_until_erased(served)
    assert list(attachment_files(served)) == []
    assert rows(served.database_url, "SELECT 1 FROM foldlog_object_references") == []


def wait_until_erased(served: Served) -> None:
    """Wait until no erasure is under way."""
    deadline = time.monotonic() + 60
    while rows(served.database_url, "SELECT 1 FROM foldlog_erasures"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
