"""What came of a storm, and what came of the same storm without the safeguard."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """The sums of one storm: a row of the table in docs/reliability.md.

    `unavailable_s` is the longest time in which nobody was served. `control` says which safeguard
    the storm's control is without. `unsound` counts broken chains, a listing that disagrees, and
    errors that nothing accounts for; `examples` says a few of the wrong things in words.
    """

    fault: str
    injected: int
    operations: int
    acknowledged: int
    lost: int
    doubled: int
    reordered: int
    unavailable_s: float
    control: str
    unsound: int = 0
    remark: str = ""
    examples: tuple[str, ...] = ()

    @property
    def wrong(self) -> int:
        """How much is not as it must be."""
        return self.lost + self.doubled + self.reordered + self.unsound

    def told(self) -> str:
        """Return it in a line."""
        wrong = f"{self.lost} lost, {self.doubled} doubled, {self.reordered} reordered"
        done = f"injected {self.injected:,} times, {self.acknowledged:,} acknowledged"
        return f"{self.fault}: {done}, {wrong}, {self.unsound} other faults"

    def plus(self, other: Outcome) -> Outcome:
        """Return both as one; the later remark stands."""
        return Outcome(
            self.fault,
            self.injected + other.injected,
            self.operations + other.operations,
            self.acknowledged + other.acknowledged,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.reordered + other.reordered,
            max(self.unavailable_s, other.unavailable_s),
            self.control,
            self.unsound + other.unsound,
            other.remark or self.remark,
            (*self.examples, *other.examples)[:EXAMPLES],
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """An outcome as a soak keeps it: of the storm itself, or of its control."""

    outcome: Outcome
    is_control: bool

    def write(self) -> None:
        """Append it to the soak's report. Outside a soak there is none."""
        if path := os.environ.get("SOAK_REPORT"):
            with Path(path).open("a") as report:
                report.write(json.dumps(asdict(self)) + "\n")

    @classmethod
    def read(cls, line: str) -> Self:
        """Return what a line of a report says."""
        read = json.loads(line)
        examples = tuple(read["outcome"].pop("examples"))
        return cls(Outcome(**read["outcome"], examples=examples), read["is_control"])


def require_nothing_wrong(outcome: Outcome) -> None:
    """Record a storm, and fail unless it raged and did no harm."""
    Recorded(outcome, is_control=False).write()
    assert outcome.injected > 0, outcome
    assert outcome.acknowledged > 0, outcome
    assert outcome.wrong == 0, outcome


def require_harm(outcome: Outcome) -> None:
    """Record a control, and fail if it did no harm: then the storm's zeros mean nothing."""
    Recorded(outcome, is_control=True).write()
    assert outcome.wrong > 0, outcome
