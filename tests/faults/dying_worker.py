"""A worker that is to be killed. Before and after each call it writes an Operation down.

Run as a process with the service's address, a session's id, the storm's name and a seed. What it
writes to standard output are pickles.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import pickle
import sys
import time
from collections.abc import Sequence
from random import Random
from typing import Final

from foldlog import AsyncAppendStream, AsyncClient, AsyncSession, user

from tests.faults.attempts import RETRY, answered
from tests.faults.histories import Append, Operation, Saw, Wrote
from tests.faults.plans import Habits

HABITS: Final = Habits(append=50, conditional=15, read=10, replace=10, rewind=10, fork=5)
STREAMED: Final = 0.3


def tell(operation: Operation) -> None:
    """Write an operation down at once."""
    os.write(sys.stdout.fileno(), pickle.dumps(operation))


def told(output: bytes) -> list[Operation]:
    """Return what a worker wrote, each operation as it was written last, the torn end left out."""
    operations: dict[str, Operation] = {}
    stream = io.BytesIO(output)
    while stream.tell() < len(output):
        try:
            operation: Operation = pickle.load(stream)
        except (EOFError, pickle.UnpicklingError):
            break
        operations[operation.request_id] = operation
    return list(operations.values())


async def work(address: str, session_id: str, storm: str, seed: str) -> None:
    """Watch the session and operate on it, one call after the other, for ever."""
    random = Random(seed)
    async with AsyncClient(address, retry=RETRY) as client, client.stream() as stream:
        session = client.session(session_id)
        watching = asyncio.create_task(watch(session))
        next_seq = 0
        for number in itertools.count():
            name = f"{session_id}-{number}"
            asked = HABITS.next_operation(random, next_seq, name, {"storm": storm})
            operation = Operation(session_id, name, asked, time.monotonic_ns())
            tell(operation)
            if asked == Append(getattr(asked, "texts", ())) and random.random() < STREAMED:
                operation.answer = await streamed(stream, session, asked.texts, name)
            else:
                operation.answer = await answered(session, asked, name)
            operation.returned_ns = time.monotonic_ns()
            tell(operation)
            if isinstance(operation.answer, Wrote | Saw):
                next_seq = operation.answer.next_seq
    await watching


async def streamed(
    stream: AsyncAppendStream, session: AsyncSession, texts: Sequence[str], request_id: str
) -> Wrote:
    """Append by way of the stream."""
    appended = await (await stream.append(session, *map(user, texts), request_id=request_id))
    return Wrote(appended.first_seq, appended.next_seq)


async def watch(session: AsyncSession) -> None:
    """Follow the session."""
    async for _ in session.watch():
        pass


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
