"""The server is killed in the middle of large writes to a SQLite file, and of its migrations."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from foldlog.persistence.migrate import pending
from foldlog.persistence.store import open_store

from tests.faults.extent import Extent
from tests.faults.histories import Findings
from tests.faults.large_writes import KINDS, LargeWrite, batch
from tests.faults.outcome import Outcome
from tests.served import Served

LONGEST_S = 0.5
Kind = Callable[[Any], LargeWrite]


async def cut_off(served: Served, write: LargeWrite, after_s: float | None) -> Any:
    """Begin a write and kill the server then, or wait until it died; return the answer, if any."""
    call = asyncio.create_task(asyncio.to_thread(write.write))
    if after_s is not None:
        await asyncio.sleep(after_s)
        served.kill9()
    try:
        return await call
    except grpc.RpcError:
        return None
    finally:
        served.process.wait()


async def attempt(served: Served, kind: Kind, after_s: float | None) -> tuple[Findings, bool]:
    """Cut a write off, and make it again; return what is wrong, and whether it was answered."""
    findings, write = Findings(), kind(served.stub)
    answer = await cut_off(served, write, after_s)
    await asyncio.to_thread(served.start)
    left = write.size()
    if answer is not None and not left:
        findings.lost.append(f"{kind.__name__} was answered and is not there")
    if left not in (0, *write.stages, write.whole):
        findings.unsound.append(f"{left} of {write.whole} are there of a {kind.__name__}")
    again = write.write()
    if answer is not None and again != answer:
        findings.reordered.append(f"{kind.__name__}: {answer}, then {again}")
    if write.size() != write.whole:
        findings.doubled.append(f"{write.size()} of {write.whole} after a retry")
    if not write.is_sound:
        findings.unsound.append(f"the chain is broken after a {kind.__name__}")
    return findings, answer is not None


async def storm(served: Served, extent: Extent, rounds: Any) -> Outcome:
    """Cut off each kind of write once in each round, somewhere."""
    findings, attempts, answered, longest_s = Findings(), 0, 0, 0.0
    for _ in rounds:
        for kind in KINDS:
            began = time.monotonic()
            found, was_answered = await attempt(served, kind, extent.random.uniform(0, LONGEST_S))
            longest_s = max(longest_s, time.monotonic() - began)
            findings.add(found)
            attempts, answered = attempts + 1, answered + was_answered
    return outcome_of(findings, attempts, attempts, longest_s)


def outcome_of(findings: Findings, attempts: int, stored: int, longest_s: float) -> Outcome:
    """Return the row of the table."""
    return Outcome(
        fault="server killed in a large write (sqlite)",
        injected=attempts,
        operations=2 * attempts,
        acknowledged=stored,
        lost=len(findings.lost),
        doubled=len(findings.doubled),
        reordered=len(findings.reordered),
        unavailable_s=longest_s,
        control="commits a write in parts",
        unsound=len(findings.unsound),
    )


async def test_a_large_write_is_there_whole_or_not_at_all_and_a_retry_completes_it(
    serve: Callable[..., Served], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    served = serve("sqlite-file")
    report(await storm(served, extent, extent.rounds(short=1, long=20)))


async def test_control_a_write_that_is_committed_in_parts_is_found_in_half(
    serve: Callable[..., Served], control: Callable[[Outcome], None]
) -> None:
    served = serve("sqlite-file", "tests.faults.unsafe.piecemeal_commits")
    write = batch(served.stub)
    await cut_off(served, write, None)
    served.program = "foldlog"
    await asyncio.to_thread(served.start)
    findings = Findings()
    if write.size() not in (0, write.whole):
        findings.unsound.append(f"{write.size()} of {write.whole} are there")
    control(outcome_of(findings, 1, 1, 0.0))


# Opens a new file, and dies before the n-th statement.
DYING = """
import os, signal, sys
from foldlog.persistence.sqlite import connections
from foldlog.persistence.store import open_store

url, left = sys.argv[1], int(sys.argv[2])
original = connections.connect

def connect(path, **options):
    connection = original(path, **options)
    connection.set_trace_callback(count)
    return connection

def count(_):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

connections.connect = connect
if sys.argv[3] == "in-parts":
    from foldlog.persistence.sqlite import schema
    original_apply = schema._apply
    def apply(connection, step):
        connection.execute("COMMIT")
        original_apply(connection, step)
        connection.execute("BEGIN")
    schema._apply = apply
open_store(url).close()
"""


def made_until(path: Path, statement: int, how: str = "whole") -> bool:
    """Have a process make a file, and die before a statement; return whether it got through."""
    command = [sys.executable, "-c", DYING, f"sqlite:///{path}", str(statement), how]
    paths = {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(command, env=paths, check=False, capture_output=True).returncode == 0


def completed(path: Path) -> bool:
    """Open a file as the service does, and tell whether its schema is whole."""
    open_store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return sound and pending(f"sqlite:///{path}") == []


def test_a_file_whose_making_was_cut_off_anywhere_is_completed(
    tmp_path: Path, extent: Extent
) -> None:
    for number in extent.rounds(short=4, long=60):
        path = tmp_path / f"{number}.db"
        made_until(path, extent.random.randrange(60))
        assert completed(path)


def test_control_a_migration_that_is_committed_in_parts_cannot_be_completed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "half.db"
    assert not made_until(path, 12, "in-parts")
    with pytest.raises(Exception, match="already exists"):
        completed(path)
