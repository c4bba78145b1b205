"""Tool calls and their results: who answers whom, and who is left alone.

A result pairs with the nearest preceding call of its id. Calls of one id in one message are
answered together. Only calls of assistant messages count, and only tool messages are results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
