"""How far a storm goes: some seconds with a fixed seed, or its share of a soak."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

WHOLE_SOAK_S = 3_600.0
TELL_EVERY_S = 20.0


@dataclass(frozen=True)
class Extent:
    """How long one storm lasts, and where its randomness comes from.

    `share_s` is its part of a soak, None in the short form. A soak shorter than an hour has
    proportionally fewer cycles.
    """

    seed: str
    share_s: float | None = None
    scale: float = 1.0
    tell: Callable[[str], None] = print
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "random", Random(self.seed))

    def seconds(self, short: float) -> float:
        """Return how long to go on: so long in the short form, else the share of the soak."""
        return short if self.share_s is None else max(short, self.share_s)

    def cycles(self, *, short: int, long: int) -> int:
        """Return how often to do something: `long` is for a soak of an hour."""
        return short if self.share_s is None else max(short, round(long * self.scale))

    def rounds(self, *, short: int, long: int, least: int = 0) -> Iterator[int]:
        """Count the cycles from 0; a soak goes on as long as its share of time lasts.

        However short the soak is, it has at least so many.
        """
        began = told = time.monotonic()
        number = 0
        wanted = max(self.cycles(short=short, long=long), 0 if self.share_s is None else least)
        while number < wanted or self._lasts(began):
            yield number
            number += 1
            if self.share_s is not None and time.monotonic() - told > TELL_EVERY_S:
                told = time.monotonic()
                self.tell(f"    round {number} after {told - began:.0f} s")

    def _lasts(self, began: float) -> bool:
        return self.share_s is not None and time.monotonic() - began < self.share_s


def extent_of(name: str, storms: int, tell: Callable[[str], None]) -> Extent:
    """Return the extent of the test of this name, one of so many that share a soak.

    SOAK_S and SOAK_SEED make the run a soak. Each storm has a seed of its own, so that it can be
    repeated alone.
    """
    seed = f"{os.environ.get('SOAK_SEED', '1')}/{name}"
    if "SOAK_S" not in os.environ:
        return Extent(seed)
    total_s = float(os.environ["SOAK_S"])
    return Extent(seed, total_s / storms, min(1.0, total_s / WHOLE_SOAK_S), tell)
