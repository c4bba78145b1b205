"""Where on a surface each tool call is made and answered, kept up as replaces change it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from foldlog.core.message import Role
from foldlog.core.pairing import Speaking

_ASSISTANT = int(Role.ASSISTANT)
_TOOL = int(Role.TOOL)
_END = (2**63, 0, 0)

# Position and seq of an entry, and of a call which of its message's ids it is.
Place = tuple[int, int, int]


class Standing(Speaking, Protocol):
    """What mentions need of an entry of a surface."""

    @property
    def position(self) -> int: ...

    @property
    def seq(self) -> int: ...


@dataclass(slots=True)
class _Mentions:
    """Where one id is called and where it is answered, ascending."""

    calls: list[Place] = field(default_factory=list)
    results: list[Place] = field(default_factory=list)


class Mentions:
    """The mentions of each id on a surface. Made when first needed, in one walk over the surface.

    The surface is the caller's: whenever it changes, `replaced` or `inserted` is to be told.
    """

    def __init__(self, surface: Iterable[Standing]) -> None:
        self._surface = surface
        self._of: dict[str, _Mentions] | None = None

    def inserted(self, entry: Standing) -> None:
        """Take note of an entry that now stands on the surface."""
        if self._of is None:
            return
        for id_, place in _calls(entry):
            insort(self._of.setdefault(id_, _Mentions()).calls, place)
        for id_, place in _results(entry):
            insort(self._of.setdefault(id_, _Mentions()).results, place)

    def replaced(self, shadowed: Iterable[Standing], replacement: Standing) -> None:
        """Take note of entries that went and of the one that came."""
        if self._of is None:
            return
        for entry in shadowed:
            for id_, place in _calls(entry):
                calls = self._of[id_].calls
                del calls[bisect_left(calls, place)]
            for id_, place in _results(entry):
                results = self._of[id_].results
                del results[bisect_left(results, place)]
        self.inserted(replacement)

    def unpaired_by(
        self, shadowed: Sequence[Standing], stop: int, replacement: Standing
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return (orphaned_result_ids, unanswered_call_ids) that a replace would itself create.

        `shadowed` is what stands from the replacement's position to `stop`, both ends in, before
        the replace. Pairs that are whole before and split by it count, and a result that the
        replacement brings without its call; what was broken already does not, nor does a new call,
        which may yet be answered. Each id comes once, in order. O(ids of the shadowed and the
        replacement * log n) once the mentions are made.
        """
        touched = dict.fromkeys(id_ for entry in (*shadowed, replacement) for id_ in _ids(entry))
        if not touched:
            return (), ()
        split = _Split(replacement, stop)
        known = self._made()
        for id_ in touched:
            split.judge(id_, known.get(id_) or _Mentions())
        return split.orphaned(), split.unanswered()

    def _made(self) -> dict[str, _Mentions]:
        if self._of is None:
            self._of = {}
            for entry in self._surface:
                self.inserted(entry)
        return self._of


class _Split:
    """What a replace does to the pairs of one id after the other."""

    def __init__(self, replacement: Standing, stop: int) -> None:
        self._start, self._stop = (replacement.position, -1, -1), (stop + 1, -1, -1)
        self._called = {id_ for id_, _ in _calls(replacement)}
        self._answered = {id_ for id_, _ in _results(replacement)}
        self._losing_call: list[tuple[Place, str]] = []
        self._brought: list[str] = []
        self._losing_results: list[tuple[Place, str]] = []
        self._said_again: list[tuple[Place, str]] = []

    def judge(self, id_: str, mentions: _Mentions) -> None:
        """Take note of what becomes of an id's pairs."""
        calls, results = mentions.calls, mentions.results
        first, behind = bisect_left(calls, self._start), bisect_left(calls, self._stop)
        late = bisect_left(results, self._stop)
        next_call = calls[behind] if behind < len(calls) else _END
        # Whether a result past the range answers the last call at or before it.
        has_late = late < len(results) and results[late] < next_call
        if first < behind:
            self._judge_shadowed_call(id_, calls[first], calls[behind - 1], results, has_late)
        if first:
            until = calls[first] if first < len(calls) else _END
            keeps_late = has_late and first == behind and id_ not in self._called
            self._judge_call_before(id_, calls[first - 1], until, results, keeps_late)
        elif id_ in self._answered:
            orphans_end = calls[first] if first < behind else self._stop
            if not _any_within(results, self._start, orphans_end):
                self._brought.append(id_)

    def _judge_shadowed_call(
        self, id_: str, first: Place, last: Place, results: Sequence[Place], has_late: bool
    ) -> None:
        if id_ not in self._called:
            if has_late:
                self._losing_call.append((last, id_))
        elif not has_late and _any_within(results, last, self._stop):
            self._said_again.append((first, id_))  # said again, but its results are shadowed

    def _judge_call_before(
        self, id_: str, call: Place, until: Place, results: Sequence[Place], keeps_late: bool
    ) -> None:
        """Judge the nearest call before the range: only it can lose results to the range."""
        is_answered = _any_within(results, call, until)
        keeps = keeps_late or _any_within(results, call, min(until, self._start))
        if is_answered and not keeps and id_ not in self._answered:
            self._losing_results.append((call, id_))

    def orphaned(self) -> tuple[str, ...]:
        """Return the ids of results that lose their call, then of one brought without its call."""
        return tuple(dict.fromkeys([*_in_order(self._losing_call), *self._brought]))

    def unanswered(self) -> tuple[str, ...]:
        """Return the ids of calls that lose their results, then of those said again."""
        losing = (*_in_order(self._losing_results), *_in_order(self._said_again))
        return tuple(dict.fromkeys(losing))


def _in_order(found: list[tuple[Place, str]]) -> list[str]:
    return [id_ for _, id_ in sorted(found)]


def _any_within(places: Sequence[Place], after: Place, before: Place) -> bool:
    """Return whether a place lies between two others, both ends out."""
    index = bisect_right(places, after)
    return index < len(places) and places[index] < before


def _calls(entry: Standing) -> Iterator[tuple[str, Place]]:
    """Yield each id that an entry calls, once, and where."""
    if entry.role == _ASSISTANT:
        position, seq = entry.position, entry.seq
        for number, id_ in enumerate(dict.fromkeys(entry.call_ids)):
            if id_ is not None:
                yield id_, (position, seq, number)


def _results(entry: Standing) -> Iterator[tuple[str, Place]]:
    """Yield the id that an entry answers, and where."""
    if entry.role == _TOOL and entry.tool_call_id is not None:
        yield entry.tool_call_id, (entry.position, entry.seq, 0)


def _ids(entry: Standing) -> Iterable[str]:
    """Return the ids that an entry calls or answers."""
    if entry.role == _ASSISTANT:
        return [id_ for id_ in entry.call_ids if id_ is not None]
    if entry.role == _TOOL and entry.tool_call_id is not None:
        return [entry.tool_call_id]
    return []
