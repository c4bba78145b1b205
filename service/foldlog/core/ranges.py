"""Ranges of the surface that a replace can take without splitting what belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from foldlog.core.pairing import Pair, Speaking, pairs


@dataclass(frozen=True, slots=True)
class IndexRange:
    """Indexes of a surface from first to last, both ends in."""

    first: int
    last: int


def nearest_range(
    surface: Sequence[Speaking], asked: IndexRange, open_turn_at: int | None = None
) -> IndexRange | None:
    """Return the range nearest to the asked one that can be replaced, or None if there is none.

    A range can be replaced if a message that neither calls nor answers could take its place and
    leave no result without its call and no call without its result, as Mentions judge, and
    if it covers nothing of an open turn: the turn goes on, so that whatever is covered of it would
    be split from what follows. `open_turn_at` is the index of the first entry of an open turn.

    Nearest means: shares an entry with the asked range, and the fewest entries are added or taken
    away at both ends together. Of those that are as near, the one that adds the fewest, since what
    was not asked for is better kept; of those, the one that begins first, since it is the newest
    messages that the model needs as they are. O(n log n), and more only where calls and results lie
    far apart.
    """
    return _Search(surface, asked, open_turn_at).nearest()


class _Search:
    """The bounds of the ranges that can be replaced, by where they begin and end.

    With `latest[b]` the last call at or before b that has a result after b, and `limit[a]` the
    first index at which the last result of a call before a lies, none of its results being before
    a: first..last can be replaced just if latest[last] < first and last < limit[first].
    """

    def __init__(
        self, surface: Sequence[Speaking], asked: IndexRange, open_turn_at: int | None
    ) -> None:
        self._asked = asked
        self._end = len(surface) if open_turn_at is None else open_turn_at
        paired = pairs(surface)
        self._latest = _latest_open(paired, len(surface))
        self._limit = _limits(paired, len(surface))

    def nearest(self) -> IndexRange | None:
        """Return the nearest range, trying starts the nearest first."""
        asked = self._asked
        best: tuple[tuple[int, int, int, int], IndexRange] | None = None
        for moved in range(max(asked.first, asked.last - asked.first) + 1):
            if best is not None and moved > best[0][0]:
                break
            for first in dict.fromkeys((asked.first - moved, asked.first + moved)):
                if not 0 <= first <= min(asked.last, self._end - 1):
                    continue
                room = None if best is None else best[0][0] - moved
                for last in self._nearest_lasts(first, room):
                    found = IndexRange(first, last)
                    key = self._cost(found)
                    if best is None or key < best[0]:
                        best = key, found
        return best[1] if best else None

    def _nearest_lasts(self, first: int, room: int | None) -> list[int]:
        """Return the last indexes nearest to the asked one, within so much room: two at most."""
        low = max(first, self._asked.first)
        high = min(self._limit[first], self._end) - 1
        if low > high:
            return []
        middle = self._asked.last
        reach = max(middle - low, high - middle)
        for moved in range(
            max(0, middle - high), (reach if room is None else min(reach, room)) + 1
        ):
            found = [
                last
                for last in dict.fromkeys((middle - moved, middle + moved))
                if low <= last <= high and self._latest[last] < first
            ]
            if found:
                return found
        return []

    def _cost(self, found: IndexRange) -> tuple[int, int, int, int]:
        first, last = found.first - self._asked.first, found.last - self._asked.last
        added = max(0, -first) + max(0, last)
        return abs(first) + abs(last), added, found.first, found.last


def _latest_open(paired: Sequence[Pair], size: int) -> list[int]:
    """Return, for each index, the last call at or before it with a result after it, else -1."""
    starting: list[list[Pair]] = [[] for _ in range(size)]
    for pair in paired:
        starting[pair.call].append(pair)
    waiting: list[tuple[int, int]] = []  # the latest call first
    latest = []
    for index in range(size):
        for pair in starting[index]:
            heappush(waiting, (-pair.call, pair.last_result))
        while waiting and waiting[0][1] <= index:
            heappop(waiting)
        latest.append(-waiting[0][0] if waiting else -1)
    return latest


def _limits(paired: Sequence[Pair], size: int) -> list[int]:
    """Return, for each start, the first index that a range beginning there must not reach."""
    entering: list[list[Pair]] = [[] for _ in range(size + 1)]
    for pair in paired:
        entering[pair.call + 1].append(pair)
    threatened: list[tuple[int, int]] = []  # the call that is done first, first
    limits = []
    for start in range(size):
        for pair in entering[start]:
            heappush(threatened, (pair.last_result, pair.first_result))
        limits.append(_first_threat(threatened, start, size))
    return limits


def _first_threat(threatened: list[tuple[int, int]], start: int, size: int) -> int:
    """Return where the first call that would lose all its results has the last of them."""
    while threatened and threatened[0][1] < start:
        heappop(threatened)  # it keeps a result before every start from here on
    return threatened[0][0] if threatened else size
