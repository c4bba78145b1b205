"""Calls and results: orphans, unanswered calls, and what a replace splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest
from foldlog.core.mentions import Mentions
from foldlog.core.message import Role
from foldlog.core.pairing import open_calls, orphans, unanswered
from foldlog.core.surface import Surface

from tests.unit.placed import Placed, placed, surface_of, unpaired_by


@dataclass(frozen=True, eq=False)
class Item:
    """A message as pairing sees it. Two that look alike are still two."""

    role: int
    call_ids: tuple[str | None, ...] = ()
    tool_call_id: str | None = None


Ids = tuple[str, ...]


def said(text: str) -> list[Item]:
    """Return the items of a notation: u, s, a (text), c:x,y (calls), r:x (result)."""
    return [one(word) for word in text.split()]


def one(word: str) -> Item:
    kind, _, ids = word.partition(":")
    names = tuple(name or None for name in ids.split(",")) if ids else ()
    match kind:
        case "c":
            return Item(Role.ASSISTANT, names)
        case "r":
            return Item(Role.TOOL, tool_call_id=ids or None)
    return Item({"u": Role.USER, "s": Role.SYSTEM, "a": Role.ASSISTANT}[kind])


ORPHANS = {
    "a pair": ("c:x r:x", []),
    "never called": ("u r:x", [1]),
    "called later": ("r:x c:x", [0]),
    "what lies between does not matter": ("c:x u s r:x", []),
    "a second result": ("c:x r:x r:x", []),
    "an id of an earlier turn": ("c:x r:x u r:x", []),
    "no id": ("c:x r:", [1]),
    "no id on either side": ("c:, r:", [1]),
    "case and spaces matter": ("c:x r:X", [1]),
    "each one": ("r:x r:y", [0, 1]),
}


@pytest.mark.parametrize(("text", "indexes"), ORPHANS.values(), ids=ORPHANS)
def test_orphans(text: str, indexes: list[int]) -> None:
    items = said(text)
    assert orphans(items) == [items[index] for index in indexes]


def test_only_calls_of_assistants_count() -> None:
    items = [Item(Role.USER, ("x",)), Item(Role.TOOL, tool_call_id="x")]
    assert orphans(items) == [items[1]]
    assert unanswered(items) == []


def test_only_tool_messages_are_results() -> None:
    items = [Item(Role.ASSISTANT, ("x",)), Item(Role.USER, tool_call_id="x")]
    assert orphans(items) == []
    assert unanswered(items) == [(items[0], "x")]


UNANSWERED = {
    "a pair": ("c:x r:x", []),
    "no result": ("u c:x u", [(1, "x")]),
    "one of two": ("c:x,y r:y", [(0, "x")]),
    "a result before its call": ("r:x c:x", [(1, "x")]),
    "a result goes to the nearest call of its id": ("c:x u c:x r:x", [(0, "x")]),
    "an id that comes again": ("c:x r:x c:x r:x", []),
    "an id twice in one message is answered together": ("c:x,x r:x", []),
    "in order": ("c:b,a", [(0, "b"), (0, "a")]),
}


@pytest.mark.parametrize(("text", "calls"), UNANSWERED.values(), ids=UNANSWERED)
def test_unanswered(text: str, calls: list[tuple[int, str]]) -> None:
    items = said(text)
    assert unanswered(items) == [(items[index], id_) for index, id_ in calls]
    assert open_calls(items) == calls


def test_a_call_without_an_id_is_open_and_cannot_be_named() -> None:
    items = said("c:x, r:x c:y")
    assert open_calls(items) == [(0, None), (2, "y")]
    assert unanswered(items) == [(items[2], "y")]


SPLITS: dict[str, tuple[str, slice, str, Ids, Ids]] = {
    "nothing that calls": ("u a u a", slice(0, 2), "s", (), ()),
    "a whole pair": ("u c:x r:x a", slice(0, 3), "s", (), ()),
    "a call without its result": ("u c:x r:x a", slice(0, 2), "s", ("x",), ()),
    "a result without its call": ("u c:x r:x a", slice(2, 3), "s", (), ("x",)),
    "a call and one of its two results": ("c:x r:x r:x", slice(0, 2), "s", ("x",), ()),
    "one of a call's two results": ("c:x r:x r:x", slice(1, 2), "s", (), ()),
    "half of a parallel batch": ("u c:a,b r:a r:b u", slice(0, 3), "s", ("b",), ()),
    "a whole parallel batch": ("u c:a,b r:a r:b u", slice(0, 4), "s", (), ()),
    "both results of a batch": ("c:a,b r:a r:b", slice(1, 3), "s", (), ("a", "b")),
    "the middle of two pairs": ("c:x r:x c:y r:y", slice(1, 3), "s", ("y",), ("x",)),
    "an open call": ("u c:x u", slice(0, 2), "s", (), ()),
    "what was orphaned already": ("u r:x u", slice(0, 1), "s", (), ()),
    "an orphan itself": ("u r:x u", slice(1, 2), "s", (), ()),
    "a call whose id was called before, too": ("c:x r:x u c:x r:x", slice(2, 4), "s", ("x",), ()),
    "the earlier of two pairs of one id": ("c:x r:x u c:x r:x", slice(0, 2), "s", (), ()),
    "across two pairs of one id": ("c:x r:x c:x r:x", slice(1, 3), "s", ("x",), ("x",)),
    "no range at all": ("c:x r:x", slice(1, 1), "u", (), ()),
    "a call said again": ("u c:x r:x", slice(0, 2), "c:x", (), ()),
    "a call said again without one of its ids": ("c:x,y r:x r:y", slice(0, 1), "c:x", ("y",), ()),
    "a result said again": ("c:x r:x", slice(1, 2), "r:x", (), ()),
    "results said again as one": ("c:x r:x r:x", slice(1, 3), "r:x", (), ()),
    "an orphan said again": ("u r:x", slice(1, 2), "r:x", (), ()),
    "a pair said again as its result": ("c:x r:x u", slice(0, 2), "r:x", ("x",), ()),
    "a pair said again as its call": ("c:x r:x u", slice(0, 2), "c:x", (), ("x",)),
    "an open call said again": ("c:x u", slice(0, 1), "c:x", (), ()),
    "a result of no call": ("u u", slice(1, 2), "r:x", ("x",), ()),
    "a new call": ("u u", slice(1, 2), "c:x", (), ()),
    "a result that answers what was open": ("c:x u", slice(1, 2), "r:x", (), ()),
    "a result takes the place of two pairs but one call": (
        *("c:x r:x c:x r:x", slice(1, 4), "r:x", (), ()),
    ),
    "a new call of the id takes another's result": ("c:x u r:x", slice(1, 2), "c:x", (), ("x",)),
    "calls without ids": ("c:, u", slice(0, 1), "s", (), ()),
    "each id once": ("c:x r:x r:x", slice(0, 1), "s", ("x",), ()),
}


@pytest.mark.parametrize(
    ("text", "shadowed", "new", "orphaned", "open_"), SPLITS.values(), ids=SPLITS
)
def test_what_a_replace_splits(
    text: str, shadowed: slice, new: str, orphaned: Ids, open_: Ids
) -> None:
    assert unpaired_by(said(text), shadowed, one(new)) == (orphaned, open_)


def _pairs(items: Sequence[Item]) -> list[tuple[Item, str, list[Item]]]:
    """Return (message, call id, results) by definition: nearest preceding call of the id."""
    owned: dict[tuple[int, str], list[Item]] = {}
    for at, item in enumerate(items):
        if item.role == Role.TOOL and item.tool_call_id is not None:
            callers = [i for i in range(at) if _calls(items[i], item.tool_call_id)]
            if callers:
                owned.setdefault((callers[-1], item.tool_call_id), []).append(item)
    return [
        (item, id_, owned.get((at, id_), []))
        for at, item in enumerate(items)
        if item.role == Role.ASSISTANT
        for id_ in dict.fromkeys(item.call_ids)
        if id_ is not None
    ]


def _calls(item: Item, id_: str) -> bool:
    return item.role == Role.ASSISTANT and id_ in item.call_ids


def _split(before: Sequence[Item], gone: slice, new: Item) -> tuple[set[str], set[str]]:
    """Return what unpaired_by is to find, from the pairs of both lists."""
    after = [*before[: gone.start], new, *before[gone.stop :]]
    pairs_after = _pairs(after)
    caller = {id(result): item for item, _, results in pairs_after for result in results}
    orphaned, open_ = set(), set()
    for item, id_, results in _pairs(before):
        kept = [result for result in results if result in after]
        if any(caller.get(id(result)) not in (item, new) for result in kept):
            orphaned.add(id_)
        answers = next((r for i, call, r in pairs_after if i is item and call == id_), None)
        if answers is not None and results and not set(answers) & {*results, new}:
            open_.add(id_)
    said_again = [(id_, r) for item, id_, r in _pairs(before[gone]) if _calls(new, id_)]
    for id_, results in dict(said_again).items():
        if results and not next(r for i, call, r in pairs_after if i is new and call == id_):
            open_.add(id_)
    was_orphaned = {item.tool_call_id for item in orphans(before) if item in before[gone]}
    if new in orphans(after) and new.tool_call_id and new.tool_call_id not in was_orphaned:
        orphaned.add(new.tool_call_id)
    return orphaned, open_


CALLING = ["c:x", "c:y", "c:x,y", "c:x,x", "c:,"]
WORDS = ["u", "s", "a", *CALLING, "r:x", "r:x", "r:y", "r:y", "r:"]


@pytest.mark.parametrize("seed", range(4))
def test_what_a_replace_splits_follows_from_the_pairs_before_and_after(seed: int) -> None:
    random = Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(1_500):
        before = said(" ".join(random.choices(WORDS, k=random.randint(1, 9))))
        start = random.randrange(len(before))
        gone = slice(start, random.randint(start, len(before)))
        new = one(random.choice(WORDS))
        orphaned, open_ = unpaired_by(before, gone, new)
        assert (set(orphaned), set(open_)) == _split(before, gone, new)
        assert len(set(orphaned)) == len(orphaned)
        assert len(set(open_)) == len(open_)
        seen.update(orphaned=bool(orphaned), open=bool(open_), neither=not orphaned and not open_)
    assert min(seen["orphaned"], seen["open"], seen["neither"]) > 100, seen


class Watched:
    """A surface that counts how often it was walked."""

    def __init__(self, entries: Sequence[Placed]) -> None:
        self._entries = entries
        self.walks = 0

    def __iter__(self) -> Iterator[Placed]:
        self.walks += 1
        return iter(self._entries)


def test_where_a_replace_neither_calls_nor_answers_the_surface_is_not_looked_at() -> None:
    entries = surface_of(said("c:x r:x u a s c:y r:y"))
    surface = Watched(entries)
    new = placed(one("s"), 2, 7)
    assert Mentions(surface).unpaired_by(entries[2:5], 4, new) == ((), ())
    assert surface.walks == 0


def test_any_number_of_replaces_walks_the_surface_once() -> None:
    entries = surface_of(said("c:x r:x c:y r:y") * 50)
    surface = Watched(entries)
    mentions = Mentions(surface)
    for index in range(100):
        new = placed(one("c:x"), index, 200 + index)
        mentions.unpaired_by([entries[index]], index, new)
        mentions.replaced([entries[index]], new)
    assert surface.walks == 1


@pytest.mark.parametrize("seed", range(4))
def test_mentions_that_are_kept_up_say_what_new_ones_say(seed: int) -> None:
    random = Random(seed)
    found = 0
    for _ in range(60):
        surface = Surface(surface_of(said(" ".join(random.choices(WORDS, k=12)))))
        mentions = Mentions(surface.entries)
        for seq in range(12, 40):
            item = one(random.choice(WORDS))
            if random.random() < 0.2:
                surface.insert(new := placed(item, seq))
                mentions.inserted(new)
                continue
            start = random.randrange(seq)
            stop = random.randrange(start, min(start + 4, seq))
            new = placed(item, start, seq)
            gone = surface.entries[surface.covered(start, stop)]
            told = mentions.unpaired_by(gone, stop, new)
            assert told == Mentions(surface.entries).unpaired_by(gone, stop, new)
            found += told != ((), ())
            mentions.replaced(surface.replace(new, stop)[1], new)
    assert found > 100
