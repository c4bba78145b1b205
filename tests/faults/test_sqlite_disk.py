"""The disk under a SQLite file is full, or becomes read-only; and has room again."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_bytes

import grpc
import pytest

from tests.contract.attachments import got, put, sample
from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.refusal import Refusal, refusal_of
from tests.contract.said import user
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.outcome import Outcome
from tests.faults.plans import Habits
from tests.faults.small_disk import SmallDisk, small_disk
from tests.faults.workers import Workers
from tests.served import Served

DEADLINE_S = 60.0
FILLS_PER_HISTORY = 3
APPENDS = Habits(conditional=0, read=0, replace=0, rewind=0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A small disk."""
    with small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture
def start(disk: SmallDisk, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Start a server on a file of that disk: start(program=...). What was there is removed."""
    started: list[Served] = []

    def fresh(program: str = "foldlog", **environment: str) -> Served:
        close()
        folder = disk.folder / "data"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        served = Served(f"sqlite:///{folder / 'foldlog.db'}", tmp_path, environment, program)
        started.append(served)
        return served.start()

    def close() -> None:
        while started:
            started.pop().close()

    yield fresh
    close()


def until_refused(write: Callable[[], object]) -> Refusal:
    """Write until it is refused, and return how."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        try:
            write()
        except grpc.RpcError as error:
            return refusal_of(error)
    raise TimeoutError("a full disk refuses nothing")


async def storm(served: Served, disk: SmallDisk, extent: Extent, fills: int) -> Outcome:
    """Fill the disk so often among the workers, and audit what they wrote."""
    habits = Habits() if served.program == "foldlog" else APPENDS
    probe = Calls.create(served.stub)
    async with Workers([served.address], extent.random, count=8, habits=habits) as workers:
        for _ in range(fills):
            await workers.answers(extent.random.randint(1, 60))
            disk.fill()
            if habits is not APPENDS:
                told = until_refused(lambda: probe.append(user("x" * 20_000)))
                assert (told.reason, told.retry is None) == ("STORE_UNAVAILABLE", False)
            else:
                await workers.answers(100)
            disk.free()
            await workers.answers(16)
    served.restart()
    return workers.history.outcome(
        "disk full (sqlite)",
        await workers.audit(),
        injected=fills,
        control="answers before the commit",
    )


async def test_what_is_acknowledged_is_kept_while_the_disk_is_full_and_writes_go_on_after(
    start: Callable[..., Served],
    disk: SmallDisk,
    extent: Extent,
    report: Callable[[Outcome], None],
) -> None:
    outcome = await storm(start(), disk, extent, FILLS_PER_HISTORY)
    for _ in extent.rounds(short=0, long=20):
        outcome = outcome.plus(await storm(start(), disk, extent, FILLS_PER_HISTORY))
    report(outcome)


async def test_control_a_server_that_answers_before_the_commit_loses_what_finds_no_room(
    start: Callable[..., Served],
    disk: SmallDisk,
    extent: Extent,
    control: Callable[[Outcome], None],
) -> None:
    served = start("tests.faults.unsafe.early_answers")
    outcome = await until_harm(lambda: storm(served, disk, extent, 1), "lost")
    control(outcome)
    assert outcome.lost > 0


def test_a_full_disk_is_told_as_what_it_is_for_every_kind_of_write(
    start: Callable[..., Served], disk: SmallDisk
) -> None:
    served = start(TMPDIR=str(disk.folder))
    log = Calls.create(served.stub)
    log.append(user("a"))
    for _ in range(3):
        log.append(*(user("b" * 100_000) for _ in range(30)))
    exported = log.export()
    disk.fill()
    until_refused(lambda: log.append(user("x" * 100_000)))
    large = sample(1_000_000)
    writes: list[Callable[[], object]] = [
        lambda: log.append(user("x" * 100_000)),
        lambda: log.update(set_labels={"a": "b" * 200}),
        lambda: put(served.stub, token_bytes(100_000)),
        lambda: put(served.stub, large),
        lambda: imported(served.stub, exported, fresh_id()),
    ]
    for write in writes:  # a little fits yet into the pages of the write-ahead log
        told = until_refused(write)
        assert (told.reason, told.retry is None) == ("STORE_UNAVAILABLE", False)
        assert "full" in told.message or "No space left" in told.message, told.message
    assert log.texts()[:1] == ["a"]
    disk.free()
    assert log.append(user("after")).next_seq == log.get().next_seq
    assert log.verify().intact  # the index too, which stood still while there was no room
    assert got(served.stub, put(served.stub, large).sha256) == large
    imported(served.stub, exported, "copy")
    served.restart()
    assert log.texts()[-1] == "after"
    assert log.verify().intact


def test_a_folder_that_cannot_be_written_to_is_refused_and_says_so(
    start: Callable[..., Served], disk: SmallDisk
) -> None:
    served = start()
    Calls.create(served.stub).append(user("a"))
    served.terminate()
    disk.set_read_only(True)
    with pytest.raises(Exception, match=r"cannot be locked.*Read-only file system"):
        served.start()
    disk.set_read_only(False)
    served.start()
