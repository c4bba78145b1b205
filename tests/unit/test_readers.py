"""The threads that blocking work waits for."""

from __future__ import annotations

import asyncio
import threading

import pytest
from foldlog.application.readers import Readers
from foldlog.core.errors import OverloadedError


async def test_a_caller_that_no_thread_serves_in_time_is_turned_away() -> None:
    readers, going_on = Readers(1, "test", 0.01), threading.Event()
    busy = asyncio.create_task(readers.run(going_on.wait, 60))
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await readers.run(int)
    going_on.set()
    assert await busy
    assert await readers.run(int) == 0
    readers.close()


async def test_a_caller_that_goes_away_leaves_its_thread_at_work() -> None:
    readers, going_on = Readers(1, "test", 0.01), threading.Event()
    busy = asyncio.create_task(readers.run(going_on.wait, 60))
    await asyncio.sleep(0)
    busy.cancel()
    with pytest.raises(asyncio.CancelledError):
        await busy
    with pytest.raises(OverloadedError):
        await readers.run(int)
    going_on.set()
    readers.close()
