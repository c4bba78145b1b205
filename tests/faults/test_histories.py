"""The history checker passes what can have happened, and finds each kind of what cannot."""

from __future__ import annotations

import pytest

from tests.faults.histories import (
    Answer,
    Append,
    Asked,
    Entry,
    Failed,
    Findings,
    Fork,
    Forked,
    Operation,
    Read,
    Refused,
    Rewind,
    Saw,
    Wrote,
    check,
)

A, B, C = Append(("a",)), Append(("b",)), Append(("c",))
AB = Append(("a", "b"))
LATER = 10


def did(asked: Asked, answer: Answer | None, begin: int, end: int | None = None) -> Operation:
    """Return an operation; without an end it took one tick."""
    returned = None if answer is None else begin + 1 if end is None else end
    request_id = "/".join(asked.texts) if isinstance(asked, Append) else f"{asked}"
    return Operation("s", request_id, asked, begin, returned, answer)


def log(*texts: str) -> list[Entry]:
    """Return a log of plain messages, one request each."""
    return [Entry(seq, text, text) for seq, text in enumerate(texts)]


def saw(next_seq: int, *texts: str) -> Saw:
    """Return the answer of a read of plain messages."""
    return Saw(next_seq, tuple(enumerate(texts)))


SOUND = {
    "one after the other": ([did(A, Wrote(0, 1), 0), did(B, Wrote(1, 2), 2)], log("a", "b")),
    "at once, in either order": (
        [did(A, Wrote(1, 2), 0, 9), did(B, Wrote(0, 1), 1, 8)],
        log("b", "a"),
    ),
    "unknown and never": ([did(A, None, 0), did(B, Wrote(0, 1), 2)], log("b")),
    "unknown and much later": (
        [did(A, None, 0), did(B, Wrote(0, 1), 2), did(Read(), saw(1, "b"), 4)],
        log("b", "a"),
    ),
    "a read beside a write sees either": (
        [did(A, Wrote(0, 1), 0, 9), did(Read(), Saw(0, ()), 1), did(Read(), saw(1, "a"), 3)],
        log("a"),
    ),
    "a lost race": (
        [did(A, Wrote(0, 1), 0), did(Append(("b",), 0), Refused(1), 2)],
        log("a"),
    ),
    "a replace and a rewind before it": (
        [
            did(AB, Wrote(0, 2), 0),
            did(Append(("c",), None, (0, 1)), Wrote(2, 3, (0, 1)), 2),
            did(Read(), Saw(3, ((2, "c"),)), 4),
            did(Rewind(1), Wrote(3, 4), 6),
            did(Read(), saw(4, "a", "b"), 8),
        ],
        [
            Entry(0, "a/b", "a"),
            Entry(1, "", "b"),
            Entry(2, "c", "c", (0, 1)),
            Entry(3, f"{Rewind(1)}", rewind_to=1),
        ],
    ),
}

LOST, DOUBLED, REORDERED, UNSOUND = "lost", "doubled", "reordered", "unsound"
BAD = {
    "an acknowledged write is gone": (LOST, [did(A, Wrote(0, 1), 0)], []),
    "an acknowledged tail is gone": (
        LOST,
        [did(A, Wrote(0, 1), 0), did(B, Wrote(1, 2), 2)],
        log("a"),
    ),
    "half of a batch": (LOST, [did(AB, None, 0)], log("a")),
    "half of an acknowledged batch": (LOST, [did(AB, Wrote(0, 2), 0)], log("a")),
    "a rewind is gone": (LOST, [did(Rewind(-1), Wrote(1, 2), 0)], log("a")),
    "a read of what is gone": (
        LOST,
        [did(A, Wrote(0, 1), 0), did(Read(), saw(2, "a", "b"), 2), did(B, None, 2)],
        log("a"),
    ),
    "a retry wrote again": (
        DOUBLED,
        [did(A, Wrote(0, 1), 0)],
        [Entry(0, "a", "a"), Entry(1, "", "a")],
    ),
    "a request was made twice": (
        DOUBLED,
        [did(Rewind(-1), Wrote(0, 1), 0)],
        [Entry(n, f"{Rewind(-1)}", rewind_to=-1) for n in range(2)],
    ),
    "what was refused came back": (
        DOUBLED,
        [did(A, Wrote(0, 1), 0), did(Append(("b",), 0), Refused(1), 2)],
        log("a", "b"),
    ),
    "a refused rewind came back": (
        DOUBLED,
        [did(A, Wrote(0, 1), 0), did(Rewind(-1), Refused(), 2)],
        [Entry(0, "a", "a"), Entry(1, f"{Rewind(-1)}", rewind_to=-1)],
    ),
    "nobody wrote it": (DOUBLED, [], log("x")),
    "two writes have one seq": (
        REORDERED,
        [did(A, Wrote(0, 1), 0), did(B, Wrote(0, 1), 0)],
        log("a", "b"),
    ),
    "the later write stands first": (
        REORDERED,
        [did(A, Wrote(1, 2), 0), did(B, Wrote(0, 1), LATER)],
        log("b", "a"),
    ),
    "a write moved": (
        REORDERED,
        [did(A, Wrote(0, 1), 0, 99), did(B, Wrote(1, 2), 0, 99)],
        log("b", "a"),
    ),
    "a batch out of its order": (
        REORDERED,
        [did(AB, None, 0)],
        [Entry(0, "a/b", "b"), Entry(1, "", "a")],
    ),
    "a hole": (REORDERED, [did(A, Wrote(1, 2), 0)], [Entry(1, "a", "a")]),
    "a stale read": (
        REORDERED,
        [did(A, Wrote(0, 1), 0), did(Read(), Saw(0, ()), LATER)],
        log("a"),
    ),
    "a read from the future": (
        REORDERED,
        [did(Read(), saw(1, "a"), 0), did(A, Wrote(0, 1), LATER)],
        log("a"),
    ),
    "a read of other words": (
        REORDERED,
        [did(A, Wrote(0, 1), 0), did(Read(), saw(1, "b"), LATER)],
        log("a"),
    ),
    "a read of what was undone": (
        REORDERED,
        [
            did(A, Wrote(0, 1), 0),
            did(Rewind(-1), Wrote(1, 2), 2),
            did(Read(), Saw(2, ((0, "a"),)), LATER),
        ],
        [Entry(0, "a", "a"), Entry(1, f"{Rewind(-1)}", rewind_to=-1)],
    ),
    "an unknown write before it was asked for": (
        REORDERED,
        [did(B, Wrote(1, 2), 0), did(A, None, LATER)],
        log("a", "b"),
    ),
    "a race won and lost": (
        REORDERED,
        [did(A, Wrote(0, 1), 0), did(Append(("b",), 1), Refused(1), 2)],
        log("a"),
    ),
    "an expectation that was not met": (
        REORDERED,
        [did(A, Wrote(0, 1), 0), did(Append(("b",), 0), Wrote(1, 2), 2)],
        log("a", "b"),
    ),
    "a refusal by a head long past": (
        REORDERED,
        [did(AB, Wrote(0, 2), 0), did(Append(("c",), 0), Refused(1), LATER)],
        [Entry(0, "a/b", "a"), Entry(1, "", "b")],
    ),
    "a replace that shadowed something else": (
        REORDERED,
        [did(AB, Wrote(0, 2), 0), did(Append(("c",), None, (0, 1)), Wrote(2, 3, (0,)), 2)],
        [Entry(0, "a/b", "a"), Entry(1, "", "b"), Entry(2, "c", "c", (0, 1))],
    ),
    "a fork of a head long past": (
        REORDERED,
        [did(A, Wrote(0, 1), 0), did(Fork("child"), Forked(0), LATER)],
        log("a"),
    ),
    "an error without a cause": (UNSOUND, [did(A, Failed("InternalError"), 0)], []),
}


def kinds(findings: Findings) -> set[str]:
    """Return the kinds that were found."""
    return {kind for kind in (LOST, DOUBLED, REORDERED, UNSOUND) if getattr(findings, kind)}


@pytest.mark.parametrize("name", SOUND)
def test_a_history_that_can_have_happened_passes(name: str) -> None:
    operations, entries = SOUND[name]
    assert kinds(check(operations, entries)) == set()


@pytest.mark.parametrize("name", BAD)
def test_a_history_that_cannot_have_happened_is_found(name: str) -> None:
    kind, operations, entries = BAD[name]
    assert kind in kinds(check(operations, entries))


def test_a_fork_begins_as_its_parent() -> None:
    mine = [did(B, Wrote(1, 2), 0)]
    assert kinds(check(mine, log("a", "b"), log("a"))) == set()
    assert LOST in kinds(check(mine, log("x", "b"), log("a")))
    assert DOUBLED in kinds(check(mine, log("a", "b"), []))
