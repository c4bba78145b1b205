"""Controls go on until their harm shows: no fault does harm each time that it strikes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from tests.faults.outcome import Outcome

ROUNDS = 10

Kind = Literal["lost", "doubled", "reordered", "unsound", "wrong"]


async def until_harm(storm: Callable[[], Awaitable[Outcome]], kind: Kind, *says: str) -> Outcome:
    """Let a storm without its safeguard rage until it has done harm of a kind, within reason.

    With `says`, until an example of it says one of these.
    """
    outcome = latest = await storm()
    for _ in range(1, ROUNDS):
        told = " ".join(latest.examples)
        if getattr(latest, kind) and (not says or any(each in told for each in says)):
            break
        latest = await storm()
        outcome = latest.plus(outcome)
    return outcome
