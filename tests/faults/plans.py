"""What a worker does next, by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from tests.faults.histories import Append, Asked, Fork, Read, Rewind

KINDS = ("append", "conditional", "read", "replace", "rewind", "fork")


@dataclass(frozen=True, slots=True)
class Habits:
    """What workers do: each kind of operation with its weight, and how they treat calls.

    An attempt of unknown fate is made again under its request id; but `abandoned` in 100
    operations are never asked about again. Of 100 attempts, `hurried` have a deadline that may
    well pass, and `cancelled` are cancelled, both at any moment within `hurry_s`.
    """

    append: int = 60
    conditional: int = 15
    read: int = 15
    replace: int = 7
    rewind: int = 3
    fork: int = 1
    abandoned: int = 5
    hurried: int = 0
    cancelled: int = 0
    hurry_s: float = 0.03

    def next_operation(
        self, random: Random, next_seq: int, name: str, labels: Mapping[str, str]
    ) -> Asked:
        """Choose an operation on a session that is believed to be at next_seq.

        The name is this operation's own: its texts, or its child's id, begin with it. A child has
        these labels.
        """
        texts = tuple(f"{name}.{part}" for part in range(random.randint(1, 4)))
        weights = [getattr(self, kind) for kind in KINDS]
        (kind,) = random.choices(KINDS, weights) if next_seq >= 2 else ("append",)
        match kind:
            case "conditional":
                return Append(texts, expected_next_seq=next_seq)
            case "read":
                return Read()
            case "replace":
                start = random.randrange(next_seq - 1)
                stop = random.randrange(start, min(start + 6, next_seq))
                return Append(texts[:1], replaces=(start, stop))
            case "rewind":
                return Rewind(random.randrange(next_seq // 2, next_seq))
            case "fork":
                return Fork(name, tuple(labels.items()))
        return Append(texts)


EVERYTHING = Habits()
APPENDS = Habits(conditional=0, read=0, replace=0, rewind=0, fork=0)
