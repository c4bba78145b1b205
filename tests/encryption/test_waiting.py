"""A restore that waits in a file until all of it is there, seen by somebody who reads the disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.said import user
from tests.encryption.keys import MASTER_KEY
from tests.served import Served

SECRET = b"the treasure lies under the third oak"
LEAST_BYTES = 8 * 1024 * 1024
COUNT = 100
DEADLINE_S = 60.0


def events(texts: Iterator[str]) -> Iterator[list[Any]]:
    """Yield events to restore, a batch of one for each text."""
    for seq, text in enumerate(texts):
        yield [event_pb2.Event(seq=seq, body=user(text).body)]


def waiting_file(served: Served) -> bytes:
    """Return what a nameless file of the server's holds, once one is large."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        for each in Path(f"/proc/{served.process.pid}/fd").iterdir():
            if "(deleted)" in str(each.readlink()) and each.stat().st_size > LEAST_BYTES:
                return each.read_bytes()
        time.sleep(0.02)
    raise AssertionError("no such file")


@pytest.mark.parametrize("keys", ["", MASTER_KEY], ids=["in-clear", "encrypted"])
def test_a_large_restore_waits_in_clear_only_without_encryption(
    serve: Callable[..., Served], keys: str
) -> None:
    served = serve("sqlite-file", FOLDLOG_MASTER_KEYS=keys)
    log, seen = Calls.create(served.stub), Event()

    def texts() -> Iterator[str]:
        for number in range(COUNT):
            yield f"{number} {SECRET.decode()} " + "x" * 120_000
        assert seen.wait(DEADLINE_S)
        yield "the last one"

    with ThreadPoolExecutor(1) as threads:
        restoring = threads.submit(log.restore_batches, events(texts()))
        try:
            assert (SECRET in waiting_file(served)) == (not keys)
        finally:
            seen.set()
        restoring.result()
    found = log.texts()
    assert (len(found), found[-1]) == (COUNT + 1, "the last one")
    assert found[7].startswith(f"7 {SECRET.decode()}")
