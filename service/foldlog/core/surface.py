"""The surface: the live surface events in the order the model sees them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from foldlog.core.errors import EmptyRangeError, EntryNotLiveError, InvalidFieldError
from foldlog.core.event import PositionRange, Record


class Standing(Protocol):
    """What the surface needs of an entry."""

    @property
    def position(self) -> int: ...

    @property
    def seq(self) -> int: ...


E = TypeVar("E", bound=Standing)


def surface_by_definition(active: Sequence[Record]) -> list[Record]:
    """Return the surface of an active log straight from its definition. O(n * replaces)."""
    shadows = [r for r in active if r.replace is not None]
    hidden = {
        c.seq
        for c in active
        for r in shadows
        if r.replace and c.seq < r.seq and r.replace.start <= c.position <= r.replace.stop
    }
    live = [e for e in active if e.is_surface and e.seq not in hidden]
    return sorted(live, key=lambda e: e.position)


class Surface(Generic[E]):
    """A mutable sequence of entries, sorted by (position, seq)."""

    __slots__ = ("_entries", "_keys", "_moved")

    def __init__(self, entries: Iterable[E] = ()) -> None:
        self._entries = list(entries)
        self._keys = [(e.position, e.seq) for e in self._entries]
        self._moved = {seq: position for position, seq in self._keys if position != seq}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[E]:
        return iter(self._entries)

    def __getitem__(self, index: int) -> E:
        return self._entries[index]

    @property
    def entries(self) -> Sequence[E]:
        """The entries in model order. Not to be changed by the caller."""
        return self._entries

    def copy(self) -> Surface[E]:
        """Return an independent surface that shares the entries."""
        twin: Surface[E] = Surface()
        twin._entries = self._entries.copy()
        twin._keys = self._keys.copy()
        twin._moved = self._moved.copy()
        return twin

    def covered(self, start: int, stop: int) -> slice:
        """Return the slice of entries at positions in [start, stop], both ends in. O(log n)."""
        return slice(bisect_left(self._keys, (start, -1)), bisect_left(self._keys, (stop + 1, -1)))

    def insert(self, entry: E) -> int:
        """Insert an entry at its place and return its index. O(log n), and what follows moves."""
        key = (entry.position, entry.seq)
        index = bisect_right(self._keys, key)
        self._keys.insert(index, key)
        self._entries.insert(index, entry)
        self._note_moved(entry)
        return index

    def _note_moved(self, entry: E) -> None:
        """Remember where an entry stands that does not stand at its seq."""
        if entry.position != entry.seq:
            self._moved[entry.seq] = entry.position

    def replace(self, entry: E, stop: int) -> tuple[int, list[E]]:
        """Shadow what stands in [entry.position, stop] and insert the entry there.

        Returns its index and the shadowed.
        """
        gone = self.covered(entry.position, stop)
        shadowed = self._entries[gone]
        self._entries[gone] = [entry]
        self._keys[gone] = [(entry.position, entry.seq)]
        for each in shadowed:
            self._moved.pop(each.seq, None)
        self._note_moved(entry)
        return gone.start, shadowed

    def index_of(self, seq: int) -> int | None:
        """Return the index of the live entry with this seq, or None. O(log n)."""
        key = self._moved.get(seq, seq), seq
        index = bisect_left(self._keys, key)
        return index if index < len(self._keys) and self._keys[index] == key else None

    def resolve(self, first_seq: int, last_seq: int) -> PositionRange:
        """Return the positions from one live entry to another, both ends in.

        Raises EntryNotLiveError if either is not live, InvalidFieldError if they stand the wrong
        way round.
        """
        first, last = self.index_of(first_seq), self.index_of(last_seq)
        if first is None or last is None:
            raise EntryNotLiveError(seq=first_seq if first is None else last_seq)
        if first > last:
            raise InvalidFieldError.of(
                "replace.entries",
                f"entry {first_seq} stands after entry {last_seq} on the surface",
            )
        return PositionRange(self._entries[first].position, self._entries[last].position)

    def require_shadowed(self, range_: PositionRange) -> None:
        """Raise EmptyRangeError if nothing live stands in the range."""
        gone = self.covered(range_.start, range_.stop)
        if gone.start >= gone.stop:
            raise EmptyRangeError(start=range_.start, stop=range_.stop)
