"""One operation through the real client: attempts until its fate is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Final, TypeVar

import foldlog
from foldlog import AsyncSession, RetryPolicy, errors

from tests.faults.histories import (
    Answer,
    Append,
    Asked,
    Failed,
    Fork,
    Forked,
    Read,
    Refused,
    Rewind,
    Saw,
    Wrote,
)
from tests.faults.plans import Habits
from tests.faults.waiting import DEADLINE_S

T = TypeVar("T")
RETRY: Final = RetryPolicy(first_delay_s=0.02, longest_delay_s=0.3)
PATIENCE_S: Final = 20.0
UNKNOWN_FATE: Final = (
    TimeoutError,
    errors.ConnectionLostError,
    errors.DeadlineExceededError,
    errors.OverloadedError,
    errors.ShuttingDownError,
    errors.StoreUnavailableError,
)


async def insisting(attempt: Callable[[], Awaitable[T]], *, abandons: bool = False) -> T:
    """Ask until the fate is known, under the same request id."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return await attempt()
        except UNKNOWN_FATE:
            if abandons or time.monotonic() > deadline:
                raise


async def hurried(
    session: AsyncSession, asked: Asked, request_id: str, habits: Habits, random: Random
) -> Answer:
    """Make one attempt, which by these habits may have little time or be cancelled."""
    hurry_s = random.uniform(0.001, habits.hurry_s)
    chance = random.randrange(100)
    if chance < habits.cancelled:
        return await asyncio.wait_for(answered(session, asked, request_id), hurry_s)
    if chance < habits.cancelled + habits.hurried:
        return await answered(session, asked, request_id, hurry_s)
    return await answered(session, asked, request_id)


async def answered(
    session: AsyncSession, asked: Asked, request_id: str, timeout_s: float = PATIENCE_S
) -> Answer:
    """Make an attempt and return what it was answered. Raises one of UNKNOWN_FATE."""
    try:
        return await _answered(session, asked, request_id, timeout_s)
    except errors.SeqConflictError as error:
        return Refused(error.next_seq)
    except errors.EmptyRangeError:
        return Refused()
    except UNKNOWN_FATE:
        raise
    except errors.FoldlogError as error:
        return Failed(f"{type(error).__name__}: {error}")


async def _answered(
    session: AsyncSession, asked: Asked, request_id: str, timeout_s: float
) -> Answer:
    match asked:
        case Read():
            reader = session.client.session(session.session_id)  # whose next_seq is this answer's
            folded = await reader.messages(timeout_s=timeout_s)
            surface = tuple((each.seq, str(each.message.content)) for each in folded)
            return Saw(reader.next_seq or 0, surface)
        case Rewind(to_seq):
            rewound = await session.rewind(to_seq, request_id=request_id, timeout_s=timeout_s)
            return Wrote(rewound.seq, rewound.next_seq)
        case Fork(child_id):
            child = await session.fork(
                session_id=child_id,
                labels=dict(asked.labels),
                request_id=request_id,
                timeout_s=timeout_s,
            )
            return Forked(child.next_seq or 0)
        case Append(texts, expected_next_seq, replaces):
            appended = await session.append(
                *_events(texts, replaces),
                expected_next_seq=expected_next_seq,
                request_id=request_id,
                timeout_s=timeout_s,
            )
            shadowed = appended.replaces[0].shadowed_seqs if appended.replaces else ()
            return Wrote(appended.first_seq, appended.next_seq, shadowed)


def _events(
    texts: Sequence[str], replaces: tuple[int, int] | None
) -> list[foldlog.Message | foldlog.NewEvent]:
    messages = [foldlog.user(text) for text in texts]
    if replaces is None:
        return list(messages)
    return [foldlog.replacing(messages[0], start=replaces[0], stop=replaces[1])]
