"""Tool calls and their results: who answers whom, and who is left alone.

A result pairs with the nearest preceding call of its id. Calls of one id in one message are
answered together. Only calls of assistant messages count, and only tool messages are results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Protocol, TypeVar

from foldlog.core.message import Role

_ASSISTANT = int(Role.ASSISTANT)
_TOOL = int(Role.TOOL)


class Speaking(Protocol):
    """What pairing needs of a message."""

    @property
    def role(self) -> int: ...

    @property
    def call_ids(self) -> tuple[str | None, ...]: ...

    @property
    def tool_call_id(self) -> str | None: ...


S = TypeVar("S", bound=Speaking)


@dataclass(slots=True)
class _Call:
    """A call by the index of its message, and the indexes of its results."""

    id: str
    at: int
    results: list[int] = field(default_factory=list)


class CallsSoFar:
    """The ids called so far, walking a list once."""

    def __init__(self) -> None:
        self._ids: set[str | None] = set()

    def is_orphaned_by_now(self, item: Speaking) -> bool:
        """Take the next item in, and return whether it is a result of no call before it."""
        role = item.role
        if role == _ASSISTANT:
            self._ids.update(item.call_ids)
            return False
        # A call without an id does not make a result without one its own.
        return role == _TOOL and (item.tool_call_id is None or item.tool_call_id not in self._ids)


def orphans(items: Iterable[S]) -> list[S]:
    """Return the tool messages whose id no preceding assistant message calls, or that have none."""
    so_far = CallsSoFar()
    return [item for item in items if so_far.is_orphaned_by_now(item)]


def unanswered(items: Sequence[S]) -> list[tuple[S, str]]:
    """Return the calls that have no result after them, in order, each with its message.

    A call without an id cannot be named, so it is left out.
    """
    return [(items[call.at], call.id) for call in _calls(items) if not call.results]


@dataclass(frozen=True, slots=True)
class Pair:
    """A call that has results: the index of its message, and those of its first and last result."""

    call: int
    first_result: int
    last_result: int


def pairs(items: Iterable[Speaking]) -> list[Pair]:
    """Return the calls that have results after them, in order. Each id of a message counts."""
    return [Pair(c.at, c.results[0], c.results[-1]) for c in _calls(items) if c.results]


def open_calls(items: Sequence[Speaking]) -> list[tuple[int, str | None]]:
    """Return the calls that have no result after them, in order, by index and id.

    A call without an id is among them: nothing can answer it.
    """
    named: list[tuple[int, str | None]] = [
        (call.at, call.id) for call in _calls(items) if not call.results
    ]
    nameless: list[tuple[int, str | None]] = [
        (index, None)
        for index, item in enumerate(items)
        if item.role == _ASSISTANT and None in item.call_ids
    ]
    return sorted(named + nameless, key=itemgetter(0))


def _calls(items: Iterable[Speaking], ids: Collection[str] | None = None) -> list[_Call]:
    """Return the calls in order, paired with their results; only those of the ids if given."""
    made: list[_Call] = []
    latest: dict[str, _Call] = {}
    for index, item in enumerate(items):
        if item.role == _ASSISTANT:
            for id_ in dict.fromkeys(item.call_ids):
                if id_ is not None and (ids is None or id_ in ids):
                    latest[id_] = _Call(id_, index)
                    made.append(latest[id_])
        elif item.role == _TOOL and item.tool_call_id is not None:
            call = latest.get(item.tool_call_id)
            if call is not None:
                call.results.append(index)
    return made


def unpaired_by(
    before: Sequence[Speaking], shadowed: slice, replacement: Speaking
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (orphaned_result_ids, unanswered_call_ids) that a replace would itself create.

    `before` is the surface, of which the replacement takes the place of the slice. Pairs that are
    whole before and split by it count, and a result that the replacement brings without its call;
    what was broken already does not, nor does a new call, which may yet be answered. Each id comes
    once, in order. Walks the slice alone where nothing in it or the replacement calls or answers.
    """
    start, stop, _ = shadowed.indices(len(before))
    touched = {id_ for index in range(start, stop) for id_ in _ids(before[index])}
    touched.update(_ids(replacement))
    if not touched:
        return (), ()
    cut = _Cut(before, start, max(start, stop), replacement, _calls(before, touched))
    return tuple(dict.fromkeys(cut.orphaned())), tuple(dict.fromkeys(cut.unanswered()))


def _ids(item: Speaking) -> Iterable[str]:
    """Return the ids that an item calls or answers."""
    if item.role == _ASSISTANT:
        return [id_ for id_ in item.call_ids if id_ is not None]
    if item.role == _TOOL and item.tool_call_id is not None:
        return [item.tool_call_id]
    return []


class _Cut:
    """A replace of surface[start:stop], seen by the calls it touches."""

    def __init__(
        self,
        surface: Sequence[Speaking],
        start: int,
        stop: int,
        replacement: Speaking,
        calls: Sequence[_Call],
    ) -> None:
        self._surface, self._start, self._stop = surface, start, stop
        brought = frozenset(_ids(replacement))
        self._called = brought if replacement.role == _ASSISTANT else frozenset()
        self._answered = brought - self._called
        self._before = [call for call in calls if call.at < start]
        self._inside = [call for call in calls if start <= call.at < stop]

    def orphaned(self) -> Iterator[str]:
        """Yield the ids of results that lose their call, then of one brought without its call."""
        for call in self._inside:
            if call.id not in self._called and any(at >= self._stop for at in call.results):
                yield call.id
        known = {call.id for call in self._before}
        yield from (
            id_ for id_ in self._answered if id_ not in known and not self._was_orphaned(id_)
        )

    def _was_orphaned(self, id_: str) -> bool:
        """Whether the slice holds an orphaned result of an id that nothing before it calls."""
        first = min((call.at for call in self._inside if call.id == id_), default=self._stop)
        shadowed = (self._surface[index] for index in range(self._start, first))
        return any(item.role == _TOOL and item.tool_call_id == id_ for item in shadowed)

    def unanswered(self) -> Iterator[str]:
        """Yield the ids of calls that lose their results."""
        for call in self._before:
            # Only the nearest call of an id can lose results to the slice, so one answer suffices.
            is_answered = call.id in self._answered
            if call.results and not is_answered and not self._keeps_result(call):
                yield call.id
        # A call that the replacement says again, but whose results it shadows.
        said_again = {call.id: call for call in self._inside if call.id in self._called}
        for call in said_again.values():
            if call.results and call.results[-1] < self._stop:
                yield call.id

    def _keeps_result(self, call: _Call) -> bool:
        """Whether a call before the slice keeps a result; one past it goes to a nearer call."""
        return any(
            at < self._start or (at >= self._stop and call.id not in self._called)
            for at in call.results
        )
