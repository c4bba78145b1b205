"""The files of a SQLite database: removed, replaced, and asked for by a second process."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from foldlog.v1 import service_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import user
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.plans import Habits
from tests.faults.workers import Workers
from tests.served import NotServingError, Served

DEADLINE_S = 60.0
SUFFIXES = ("", "-wal", "-shm", ".lock")
APPENDS = Habits(conditional=0, read=0, replace=0, rewind=0)


def database_of(served: Served) -> Path:
    """Return the database file of a server."""
    return Path(served.database_url.removeprefix("sqlite:///"))


def beside(served: Served, suffix: str) -> Path:
    """Return one of the files of the database."""
    return Path(f"{database_of(served)}{suffix}")


def until_logged(served: Served, said: str) -> None:
    """Wait until the server has logged something."""
    deadline = time.monotonic() + DEADLINE_S
    while said not in served.output_tail(100_000):
        assert time.monotonic() < deadline, served.output_tail()
        time.sleep(0.01)


async def remove_log(served: Served, extent: Extent, removals: int) -> Outcome:
    """Remove the write-ahead log under the workers and kill the server, so often; then audit."""
    async with Workers([served.address], extent.random, count=6, habits=APPENDS) as workers:
        for _ in range(removals):
            await workers.answers(extent.random.randint(5, 60))
            beside(served, "-wal").unlink()
            if served.program == "foldlog":
                until_logged(served, "feed.interrupted")
            else:
                await workers.answers(30)
            served.kill9()
            served.output.unlink()
            served.start()
        await workers.answers(6)
    return workers.history.outcome(
        "write-ahead log removed under the server, and server killed (sqlite)",
        await workers.audit(),
        injected=removals,
        control="does not look at its files",
    )


async def test_what_was_acknowledged_outlives_the_removal_of_the_log(
    serve: Callable[..., Served], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    served = serve("sqlite-file", FOLDLOG_FEED_POLL_S="0.02")
    outcome = await remove_log(served, extent, 2)
    for _ in extent.rounds(short=0, long=20):
        outcome = outcome.plus(await remove_log(served, extent, 5))
    report(outcome)


async def test_control_a_server_that_does_not_look_at_its_files_loses_with_the_log(
    serve: Callable[..., Served], extent: Extent, control: Callable[[Outcome], None]
) -> None:
    served = serve("sqlite-file", "tests.faults.unsafe.blind_files")
    outcome = await until_harm(lambda: remove_log(served, extent, 1), "lost")
    control(outcome)
    assert outcome.lost > 0


def test_nothing_is_written_or_read_while_a_file_is_not_in_its_place(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-file", FOLDLOG_FEED_POLL_S="0.02")
    log = Calls.create(served.stub)
    log.append(user("before"))
    for suffix in SUFFIXES:
        moved = beside(served, suffix)
        moved.rename(beside(served, ".moved"))
        for call in (lambda: log.append(user("in vain")), log.verify, log.export):
            with refused("STORE_UNAVAILABLE") as told:
                call()
            assert f"{moved.name} was removed or replaced" in told.message
            assert str(moved.parent) not in told.message
        until_logged(served, f"{moved.name} was removed")
        beside(served, ".moved").rename(moved)
        log.append(user("after"))
    served.restart()
    assert log.texts() == ["before", *(["after"] * len(SUFFIXES))]


def test_an_outage_is_logged_once_however_long_it_lasts(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_FEED_POLL_S="0.001")
    log = Calls.create(served.stub)
    lock = beside(served, ".lock")
    lock.rename(beside(served, ".moved"))
    until_logged(served, "feed.interrupted")
    for _ in range(200):  # while the feed tries again and again
        with pytest.raises(grpc.RpcError):
            log.verify()
    beside(served, ".moved").rename(lock)
    until_logged(served, "feed.resumed")
    assert served.output_tail(1_000_000).count("feed.interrupted") == 1
    request = service_pb2.ListSessionsRequest()
    assert len(served.stub.ListSessions(request, timeout=DEADLINE_S).sessions) == 1


def test_a_database_that_was_replaced_is_not_mixed_with_the_one_before(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-file")
    log = Calls.create(served.stub)
    log.append(user("kept"))
    served.terminate()
    backup = beside(served, ".backup")
    shutil.copy(database_of(served), backup)
    served.start()
    log.append(*(user(f"later {number} " * 500) for number in range(100)))
    backup.replace(database_of(served))
    with refused("STORE_UNAVAILABLE"):
        log.append(user("in vain"))
    served.restart()
    assert log.texts() == ["kept"]
    assert log.verify().intact
    log.append(user("goes on"))
    served.restart()
    assert log.texts() == ["kept", "goes on"]


def other_on(served: Served, directory: Path) -> Served:
    """Return a second server on the same file, not started yet."""
    directory.mkdir()
    return Served(served.database_url, directory, program=served.program)


async def outcome_of(workers: Workers, injected: int) -> Outcome:
    """Audit what the workers wrote."""
    return workers.history.outcome(
        "second process on the same file (sqlite)",
        await workers.audit(),
        injected=injected,
        control="no lock",
    )


async def test_a_second_process_is_refused_and_the_first_goes_on(
    serve: Callable[..., Served],
    tmp_path: Path,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    served = serve("sqlite-file")
    other = other_on(served, tmp_path / "other")
    attempts = extent.cycles(short=2, long=20)
    async with Workers([served.address], extent.random, count=6) as workers:
        for _ in range(attempts):
            await workers.answers(extent.random.randint(5, 40))
            with pytest.raises(NotServingError) as refusal:
                await asyncio.to_thread(other.start)
            assert f"is in use by process {served.process.pid}" in str(refusal.value)
            assert "use PostgreSQL" in str(refusal.value)
            assert "Traceback" not in str(refusal.value)
    report(await outcome_of(workers, attempts))


async def test_control_two_processes_without_the_lock_do_not_see_each_others_writes(
    serve: Callable[..., Served],
    tmp_path: Path,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = serve("sqlite-file", "tests.faults.unsafe.unlocked_file")
    other = other_on(served, tmp_path / "other").start()
    try:
        addresses = [served.address, other.address]

        async def storm() -> Outcome:
            async with Workers(addresses, extent.random, count=6, sessions=2) as workers:
                await workers.answers(200)
            return await outcome_of(workers, 1)

        control(await until_harm(storm, "wrong"))
    finally:
        other.close()
