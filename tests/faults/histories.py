"""Checks what clients saw of a session against what its log says in the end.

The model is a list: the log. A session is linearizable if all operations on it can be put in one
order that respects real time (what was answered before another began comes first) and in which
each answer is the model's. In general that is a search over orders; here it is a comparison,
because the answers give the order away. A write says the seqs it took, no two writes take the
same, and seqs only grow, so writes can stand in no other order than that of their seqs. A read,
and a write refused for its expected_next_seq, says the next_seq it saw, so it stands behind the
write that made that number and before the next one; reads of the same number change nothing, and
their order among themselves is free. So each operation has one place, `(next_seq, is_read)`, and
the history is linearizable if and only if the answers agree with the log up to their place and no
operation stands before one that had been answered when it began.

An operation of unknown fate has no end: it may have taken effect at any later time, and then the
log has it, or never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeAlias

Place: TypeAlias = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Append:
    """Append texts, none of which is ever appended by another operation.

    `replaces` is a range of positions, both ends in, that the only text stands for.
    """

    texts: tuple[str, ...]
    expected_next_seq: int | None = None
    replaces: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Rewind:
    """Take the active log back to a seq."""

    to_seq: int


@dataclass(frozen=True, slots=True)
class Read:
    """Read the messages."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Make a session of this id from all there is now."""

    child_id: str
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Wrote:
    """Events are durable: from first_seq to below next_seq."""

    first_seq: int
    next_seq: int
    shadowed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Saw:
    """The messages at next_seq: their seqs and texts in surface order."""

    next_seq: int
    surface: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Forked:
    """The child holds the log below next_seq."""

    next_seq: int


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was written. A lost race says the next_seq that it found."""

    next_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An error that nothing the workers do accounts for."""

    said: str


Asked: TypeAlias = Append | Rewind | Read | Fork
Answer: TypeAlias = Wrote | Saw | Forked | Refused | Failed


@dataclass(slots=True, eq=False)
class Operation:
    """What a worker asked of a session, when, and what it was answered.

    Times are of one monotonic clock. Without an answer its fate is unknown.
    """

    session_id: str
    request_id: str
    asked: Asked
    invoked_ns: int
    returned_ns: int | None = None
    answer: Answer | None = None

    @property
    def is_acknowledged(self) -> bool:
        """Whether it was a write, and done."""
        return isinstance(self.answer, Wrote | Forked)


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the log as it is read in the end."""

    seq: int
    request_id: str = ""
    text: str | None = None
    replaces: tuple[int, int] | None = None
    rewind_to: int | None = None


@dataclass(slots=True)
class Findings:
    """What is wrong with a history, in words.

    lost: an acknowledged write is not in the log, or half of a batch is. doubled: a write is there
    twice, or although it was refused, or nobody wrote it. reordered: an order that no
    linearization has, or an answer that is not the model's. unsound: a broken chain, a listing
    that disagrees, an error that has no cause.
    """

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.reordered or self.unsound)

    def examples(self) -> tuple[str, ...]:
        """Return a few of them, one of each kind first."""
        kinds = (self.lost, self.doubled, self.reordered, self.unsound)
        return tuple(said for each in zip_longest(*kinds) for said in each if said)[:5]

    def add(self, other: Findings) -> None:
        """Take in what is wrong elsewhere."""
        self.lost += other.lost
        self.doubled += other.doubled
        self.reordered += other.reordered
        self.unsound += other.unsound


def check(
    operations: Sequence[Operation], log: Sequence[Entry], inherited: Sequence[Entry] = ()
) -> Findings:
    """Hold one session's operations to its log, in O(n log n) but for the answers' own lengths.

    `log` is read when no operation is answered any more. A fork begins with what it inherited.
    """
    return _History(operations, log, inherited).checked()


class _History:
    """One session's operations beside its log."""

    def __init__(
        self, operations: Sequence[Operation], log: Sequence[Entry], inherited: Sequence[Entry]
    ) -> None:
        self._operations = operations
        self._log = log
        self._inherited = inherited
        self._found = Findings()
        self._seqs_of: dict[str, list[int]] = {}
        for entry in log:
            if entry.text is not None:
                self._seqs_of.setdefault(entry.text, []).append(entry.seq)
        self._own = log[len(inherited) :]
        self._by_request = {entry.request_id: entry for entry in self._own if entry.request_id}

    def checked(self) -> Findings:
        self._check_log()
        for operation in self._operations:
            if isinstance(operation.answer, Failed):
                self._found.unsound.append(f"{operation.asked}: {operation.answer.said}")
            elif isinstance(operation.asked, Append):
                self._check_append(operation, operation.asked)
            elif isinstance(operation.asked, Rewind):
                self._check_rewind(operation, operation.asked)
        self._check_claims()
        self._check_order()
        if not self._found.reordered:  # a log in disorder is no model
            self._check_answers()
        return self._found

    def _check_log(self) -> None:
        """Each seq once, upwards without gap; each text and request once, and somebody's."""
        if [entry.seq for entry in self._log] != list(range(len(self._log))):
            self._found.reordered.append("the log's seqs are not 0, 1, 2 ...")
        if list(self._log[: len(self._inherited)]) != list(self._inherited):
            self._found.lost.append("the fork does not begin as its parent")
        for text, seqs in self._seqs_of.items():
            if len(seqs) > 1:
                self._found.doubled.append(f"{text} is stored at {seqs}")
        ids = Counter(entry.request_id for entry in self._own if entry.request_id)
        for request_id, count in ids.items():
            if count > 1:
                self._found.doubled.append(f"request {request_id} was made {count} times")
        for text in {entry.text for entry in self._own if entry.text} - self._written():
            self._found.doubled.append(f"{text} was written by nobody")

    def _written(self) -> set[str]:
        appends = (each.asked for each in self._operations if isinstance(each.asked, Append))
        return {text for append in appends for text in append.texts}

    def _check_append(self, operation: Operation, asked: Append) -> None:
        stored = [self._seqs_of.get(text, []) for text in asked.texts]
        match operation.answer:
            case Wrote(first_seq, next_seq):
                self._check_stored(asked.texts, first_seq, next_seq)
                expected = asked.expected_next_seq
                if expected is not None and expected != first_seq:
                    self._found.reordered.append(f"{asked} was written at {first_seq}")
            case Refused() if any(stored):
                self._found.doubled.append(f"{asked} was refused and is stored at {stored}")
            case Refused(next_seq) if next_seq is not None and next_seq == asked.expected_next_seq:
                self._found.reordered.append(f"{asked} was refused at the seq that it expected")
            case None if any(stored):
                self._check_whole(asked, stored)

    def _check_stored(self, texts: Sequence[str], first_seq: int, next_seq: int) -> None:
        if next_seq - first_seq != len(texts):
            self._found.reordered.append(f"{texts} took {first_seq} to {next_seq - 1}")
        for seq, text in enumerate(texts, first_seq):
            found = self._seqs_of.get(text)
            if not found:
                self._found.lost.append(f"{text}, acknowledged at {seq}")
            elif seq not in found:
                self._found.reordered.append(f"{text}, acknowledged at {seq}, stands at {found}")

    def _check_whole(self, asked: Append, stored: Sequence[Sequence[int]]) -> None:
        """What was never answered is there whole, in its order, or not at all."""
        if not all(stored):
            self._found.lost.append(f"half of {asked} is stored: {stored}")
            return
        firsts = [seqs[0] for seqs in stored]
        if firsts != list(range(firsts[0], firsts[0] + len(firsts))):
            self._found.reordered.append(f"{asked} is stored at {stored}")

    def _check_rewind(self, operation: Operation, asked: Rewind) -> None:
        entry = self._by_request.get(operation.request_id)
        match operation.answer:
            case Wrote(first_seq, _):
                if entry is None:
                    self._found.lost.append(f"{asked}, acknowledged at {first_seq}")
                elif (entry.seq, entry.rewind_to) != (first_seq, asked.to_seq):
                    self._found.reordered.append(f"{asked}, acknowledged at {first_seq}: {entry}")
            case Refused() if entry is not None:
                self._found.doubled.append(f"{asked} was refused and is stored at {entry.seq}")

    def _check_claims(self) -> None:
        """No seq is acknowledged to two writes."""
        claims = Counter(
            seq
            for operation in self._operations
            if isinstance(operation.answer, Wrote)
            for seq in range(operation.answer.first_seq, operation.answer.next_seq)
        )
        for seq, count in claims.items():
            if count > 1:
                self._found.reordered.append(f"seq {seq} was acknowledged to {count} writes")

    def _check_order(self) -> None:
        """No operation stands before one that had been answered when it began."""
        placed = [(each, place) for each in self._operations if (place := self._place(each))]
        ended = sorted(
            ((each.returned_ns, place) for each, place in placed if each.returned_ns is not None),
            key=lambda pair: pair[0],
        )
        furthest: Place = (-1, False)
        done = 0
        for operation, place in sorted(placed, key=lambda pair: pair[0].invoked_ns):
            while done < len(ended) and ended[done][0] < operation.invoked_ns:
                furthest = max(furthest, ended[done][1])
                done += 1
            if place < furthest:
                self._found.reordered.append(
                    f"{operation.asked} stands at {place}, after {furthest} was answered"
                )

    def _place(self, operation: Operation) -> Place | None:
        """Return where an operation stands: behind the write that made its number."""
        match operation.answer:
            case Wrote(_, next_seq):
                return (next_seq, False)
            case Saw(next_seq) | Forked(next_seq):
                return (next_seq, True)
            case Refused(int() as next_seq):
                return (next_seq, True)
        return self._found_place(operation)

    def _found_place(self, operation: Operation) -> Place | None:
        """Return where the log has a write that was never answered, if it has."""
        entry = self._by_request.get(operation.request_id)
        if operation.answer is not None or entry is None:
            return None
        count = len(operation.asked.texts) if isinstance(operation.asked, Append) else 1
        return (entry.seq + count, False)

    def _check_answers(self) -> None:
        """Each answer is the model's, at its place."""
        asked_at: dict[int, list[Operation]] = {}
        for operation in self._operations:
            match operation.answer:
                case Saw(next_seq, _):
                    asked_at.setdefault(next_seq, []).append(operation)
                case Wrote(first_seq, _) if getattr(operation.asked, "replaces", None):
                    asked_at.setdefault(first_seq, []).append(operation)
        answered = 0
        for next_seq, surface in enumerate(_surfaces(self._log)):
            for operation in asked_at.get(next_seq, ()):
                answered += 1
                self._check_answer(operation, surface)
        if answered < sum(map(len, asked_at.values())):
            self._found.lost.append("an answer speaks of seqs beyond the log")

    def _check_answer(self, operation: Operation, surface: _Surface) -> None:
        match operation.answer:
            case Saw(next_seq, saw) if saw != tuple((seq, text) for _, seq, text in surface):
                self._found.reordered.append(f"a read at {next_seq} saw {saw[-5:]}")
            case Wrote(first_seq, _, shadowed):
                assert isinstance(operation.asked, Append)
                assert operation.asked.replaces is not None
                start, stop = operation.asked.replaces
                wanted = tuple(seq for position, seq, _ in surface if start <= position <= stop)
                if wanted != shadowed:
                    self._found.reordered.append(f"{first_seq} shadowed {shadowed}, not {wanted}")


_Surface: TypeAlias = tuple[tuple[int, int, str], ...]


def _surfaces(log: Iterable[Entry]) -> Iterator[_Surface]:
    """Yield the surface before the first event and after each: (position, seq, text), sorted."""
    surfaces: list[_Surface] = [()]
    yield ()
    for entry in log:
        surfaces.append(_after(entry, surfaces))
        yield surfaces[-1]


def _after(entry: Entry, surfaces: Sequence[_Surface]) -> _Surface:
    now = surfaces[-1]
    if entry.rewind_to is not None:
        return surfaces[entry.rewind_to + 1]
    if entry.text is None:
        return now
    if entry.replaces is None:
        return (*now, (entry.seq, entry.seq, entry.text))
    start, stop = entry.replaces
    before = tuple(each for each in now if each[0] < start)
    after = tuple(each for each in now if each[0] > stop)
    return (*before, (start, entry.seq, entry.text), *after)
