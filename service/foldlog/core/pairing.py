"""Tool calls and their results: who answers whom, and who is left alone.

A result pairs with the nearest preceding call of its id. Calls of one id in one message are
answered together. Only calls of assistant messages count, and only tool messages are results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Protocol, TypeVar

from foldlog.core.message import Role

SETTLED = 16  # so far apart are the places that are remembered
KEEP_UP = 256
AT_ONCE = 2_000

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


class Settled:
    """Where in a list every call before has its result: from there on open calls are looked for.

    The list is the caller's. A call that is made again before it was answered stays open for ever:
    there is no such place behind it.
    """

    def __init__(self) -> None:
        self._places = [0]
        self._next = 0
        self._open: set[str] = set()
        self._is_lost = False

    def changed(self, index: int) -> None:
        """Forget what is known of a list that was changed at an index, or behind it too."""
        if index < self._next:
            del self._places[bisect_right(self._places, index) :]
            self._next = self._places[-1]
            self._open, self._is_lost = set(), False

    def reach(self, items: Sequence[Speaking], count: int) -> None:
        """Look at so many items from the front, some thousand of them and their calls at once.

        Those that were seen are not looked at again.
        """
        cost, stop = 0, min(count, len(items))
        while self._next < stop and cost < AT_ONCE:
            item = items[self._next]
            self._pass(item)
            self._next += 1
            cost += 1 + len(item.call_ids)
            # Some places are as good as all of them.
            if not self._open and not self._is_lost and self._next >= self._places[-1] + SETTLED:
                self._places.append(self._next)

    def keep_up(self, items: Sequence[Speaking]) -> None:
        """Look at what was added, now and then: most often it costs nothing."""
        if len(items) - self._next >= KEEP_UP:
            self.reach(items, self._next + KEEP_UP)

    def _pass(self, item: Speaking) -> None:
        if item.role == _ASSISTANT:
            for id_ in dict.fromkeys(item.call_ids):
                if id_ is not None:
                    self._is_lost = self._is_lost or id_ in self._open
                    self._open.add(id_)
        elif item.role == _TOOL and item.tool_call_id is not None:
            self._open.discard(item.tool_call_id)

    def before(self, items: Sequence[Speaking], count: int) -> int:
        """Return a place, at most `count`, before which every call has its result."""
        self.reach(items, count)
        return self._places[bisect_right(self._places, count) - 1]


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


def _calls(items: Iterable[Speaking]) -> list[_Call]:
    """Return the calls in order, paired with their results."""
    made: list[_Call] = []
    latest: dict[str, _Call] = {}
    for index, item in enumerate(items):
        if item.role == _ASSISTANT:
            for id_ in dict.fromkeys(item.call_ids):
                if id_ is not None:
                    latest[id_] = _Call(id_, index)
                    made.append(latest[id_])
        elif item.role == _TOOL and item.tool_call_id is not None:
            call = latest.get(item.tool_call_id)
            if call is not None:
                call.results.append(index)
    return made
