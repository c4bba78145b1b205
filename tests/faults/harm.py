"""Controls go on until their harm shows: no fault does harm each time that it strikes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from tests.faults.outcome import Outcome

ROUNDS = 10

Kind = Literal["lost", "doubled", "reordered", "wrong"]


async def until_harm(storm: Callable[[], Awaitable[Outcome]], kind: Kind) -> Outcome:
    """Let a storm without its safeguard rage until it has done harm of a kind, within reason."""
    outcome = await storm()
    for _ in range(1, ROUNDS):
        if getattr(outcome, kind):
            break
        outcome = outcome.plus(await storm())
    return outcome
