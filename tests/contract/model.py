"""A plain model of a session, straight from the definitions: slow, and easy to believe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LIVE, SHADOWED, UNDONE = 1, 2, 3


class RefusedError(Exception):
    """The model refuses an op, with the reason the service is to give."""

    @property
    def reason(self) -> str:
        """The reason."""
        return str(self.args[0])


@dataclass(frozen=True)
class Entry:
    """An event. `text` is set on surface events, `replace` on replaces, `rewind_to` on rewinds."""

    seq: int
    text: str | None = None
    replace: tuple[int, int] | None = None
    rewind_to: int | None = None

    @property
    def position(self) -> int:
        """Where it stands."""
        return self.seq if self.replace is None else self.replace[0]


@dataclass
class Model:
    """A session: its events, what of them is dropped, and from where on they are its own."""

    entries: list[Entry] = field(default_factory=list)
    next_seq: int = 0
    dropped: set[int] = field(default_factory=set)
    own_from_seq: int = 0

    def fork(self, at_seq: int) -> Model:
        """Return the child that a fork makes."""
        kept = [each for each in self.entries if each.seq <= at_seq]
        dropped = {seq for seq in self.dropped if seq <= at_seq}
        return Model(kept, at_seq + 1, dropped, at_seq + 1)

    def active(self, at_seq: int) -> list[Entry]:
        """Return the active log after a seq."""
        after: list[tuple[int, list[Entry]]] = [(-1, [])]
        for each in self.entries:
            if each.seq > at_seq:
                break
            target = each.seq if each.rewind_to is None else each.rewind_to
            before = next(log for seq, log in reversed(after) if seq <= target)
            after.append((each.seq, before if each.rewind_to is not None else [*before, each]))
        return after[-1][1]

    def surface(self, at_seq: int | None = None) -> list[Entry]:
        """Return the surface after a seq, or now."""
        active = self.active(self.next_seq - 1 if at_seq is None else at_seq)
        hidden = {c.seq for c in active for r in active if _hides(r, c)}
        live = [each for each in active if each.text is not None and each.seq not in hidden]
        return sorted(live, key=lambda each: each.position)

    def state(self, entry: Entry) -> int:
        """Return whether an event counts now."""
        active = self.active(self.next_seq)
        if entry not in active:
            return UNDONE
        is_hidden = any(_hides(each, entry) for each in active)
        return SHADOWED if entry.text is not None and is_hidden else LIVE

    def is_whole(self, at_seq: int) -> bool:
        """Whether the fold at a seq can be read: it needs nothing that was dropped."""
        return not any(each.seq in self.dropped for each in self.surface(at_seq))

    def whole_from(self) -> int:
        """Return the first seq from which every state can be read."""
        torn = [seq for seq in range(self.next_seq) if not self.is_whole(seq)]
        return torn[-1] + 1 if torn else 0

    def learn_dropped(self, told: set[int]) -> None:
        """Take over what a read says is dropped, which must be what this model says.

        Of an ancestor's events it may be fewer: bodies that another fork reads are still there.
        """
        own = {seq for seq in self.dropped if seq >= self.own_from_seq}
        assert own <= told <= self.dropped, (self, told)
        self.dropped = told

    def apply(self, op: dict[str, Any]) -> None:
        """Apply an op, all of it or nothing."""
        match op["op"]:
            case "append":
                for text in op["texts"]:
                    self._add(Entry(self.next_seq, text))
            case "bookkeeping":
                self._add(Entry(self.next_seq))
            case "positions":
                self._replace(op["text"], op["start"], op["stop"], op["allow_empty"])
            case "entries":
                self._replace_entries(op["text"], op["first"], op["last"])
            case "rewind":
                self._rewind(op["to"])
            case "restore":
                self.next_seq += op["gap"]
                self._add(Entry(self.next_seq, op["text"]))
            case "snapshot":
                self._snapshot()

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.next_seq = entry.seq + 1

    def _replace(self, text: str, start: int, stop: int, allow_empty: bool) -> None:
        if not 0 <= start <= stop < self.next_seq:
            raise RefusedError("INVALID_FIELD")
        if not allow_empty and not any(start <= e.position <= stop for e in self.surface()):
            raise RefusedError("EMPTY_RANGE")
        self._add(Entry(self.next_seq, text, (start, stop)))

    def _replace_entries(self, text: str, first: int, last: int) -> None:
        surface = self.surface()
        order = [each.seq for each in surface]
        if first not in order or last not in order:
            raise RefusedError("ENTRY_NOT_LIVE")
        if order.index(first) > order.index(last):
            raise RefusedError("INVALID_FIELD")
        start, stop = (surface[order.index(seq)].position for seq in (first, last))
        self._replace(text, start, stop, allow_empty=False)

    def _rewind(self, to_seq: int) -> None:
        if to_seq < -1:
            raise RefusedError("INVALID_FIELD")
        if to_seq >= self.next_seq:
            raise RefusedError("SEQ_BEYOND_HEAD")
        if not self.is_whole(to_seq):
            raise RefusedError("HISTORY_DROPPED")
        self._add(Entry(self.next_seq, rewind_to=to_seq))

    def _snapshot(self) -> None:
        """Drop of its own what no longer counts; an ancestor's rows are not its to drop."""
        live = self.surface()
        own = [e for e in self.entries if e.seq >= self.own_from_seq and e.text is not None]
        self.dropped |= {each.seq for each in own if each not in live}


def _hides(replace: Entry, entry: Entry) -> bool:
    if replace.replace is None or entry.seq >= replace.seq:
        return False
    start, stop = replace.replace
    return start <= entry.position <= stop
