"""PostgreSQL refuses to write: its disk is full, or it is read-only."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import Server
from tests.faults.databases import Database, fresh_database
from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.raging import ABANDONED, HOPEFUL, Fault, Inject, Serve, Take

READ_ONLY = Fault("PostgreSQL is read-only", "a commit that failed is not taken for done")
DISK_FULL = Fault("PostgreSQL's disk is full", "a commit that failed is not taken for done")
DISK_BYTES = 64 * 1024 * 1024
FILLING_BYTES = 1024 * 1024


@pytest.fixture
def forbid(database: Database, extent: Extent) -> Inject:
    """Have it read-only for a while, for sessions that begin now, of which all do."""

    async def inject() -> None:
        await database.set("default_transaction_read_only", "on")
        await database.cut_all()
        await asyncio.sleep(extent.random.uniform(0.2, 1))
        await database.set("default_transaction_read_only", None)

    return inject


async def test_a_read_only_database_loses_and_doubles_nothing(
    serve: Serve, database: Database, forbid: Inject, extent: Extent, report: Take
) -> None:
    report(await READ_ONLY.storms(serve("postgres", url=database.url), extent, forbid))


async def test_control_writes_to_a_read_only_database_are_not_there(
    serve: Serve, database: Database, forbid: Inject, extent: Extent, control: Take
) -> None:
    served = serve("postgres", HOPEFUL, url=database.url)
    outcome = await until_harm(
        lambda: READ_ONLY.rages(served, extent, forbid, 1, ABANDONED), "lost"
    )
    control(outcome)
    assert outcome.lost > 0


@pytest.fixture
def small_disk(breakable: Server, tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own for one database. Skips where none can be mounted."""
    disk = breakable.folder / f"disk-{tmp_path.name}"
    disk.mkdir()
    size = f"size={DISK_BYTES}"
    mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        disk.rmdir()
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)
    disk.rmdir()


@pytest.fixture
def small_database(breakable: Server, small_disk: Path) -> Iterator[Database]:
    """A database whose tables are on a small disk."""
    space, place = f"small_{os.getpid()}", small_disk / "space"
    place.mkdir()
    owner = breakable.folder.stat()
    os.chown(place, owner.st_uid, owner.st_gid)
    breakable.execute(f"CREATE TABLESPACE {space} LOCATION '{place}'")
    try:
        with fresh_database(breakable, tablespace=space) as database:
            yield database
    finally:
        breakable.execute(f"DROP TABLESPACE {space}")


def fill(disk: Path) -> None:
    """Take what is left of a disk."""
    with (disk / "filling").open("wb", buffering=0) as filling:
        try:
            while True:
                filling.write(bytes(FILLING_BYTES))
        except OSError:
            return


@pytest.fixture
def take_space(small_disk: Path, extent: Extent) -> Inject:
    """Fill the disk for a while."""

    async def inject() -> None:
        await asyncio.to_thread(fill, small_disk)
        await asyncio.sleep(extent.random.uniform(1, 2))
        (small_disk / "filling").unlink()

    return inject


async def test_a_full_disk_loses_and_doubles_nothing(
    serve: Serve, small_database: Database, take_space: Inject, extent: Extent, report: Take
) -> None:
    report(await DISK_FULL.storms(serve("postgres", url=small_database.url), extent, take_space))


async def test_control_writes_to_a_full_disk_are_not_there(
    serve: Serve, small_database: Database, take_space: Inject, extent: Extent, control: Take
) -> None:
    served = serve("postgres", HOPEFUL, url=small_database.url)
    outcome = await until_harm(
        lambda: DISK_FULL.rages(served, extent, take_space, habits=ABANDONED), "lost"
    )
    control(outcome)
    assert outcome.lost > 0
