"""Changed bytes by a seed: what a fuzzer without coverage makes of a corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

CHUNKS: Final = (
    *(b"", b"\0", b"\xff", b"\n", b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b"-", b"e9999"),
    *(b"null", b"true", b"NaN", b"\\ud800", b'"id":1', b"\xed\xa0\x80", b"\x80\x80\x80\x80\x10"),
)
VALUES: Final[tuple[object, ...]] = (
    *(None, True, -1, 0, 2**63, 10**400, 1e308, "", "\0", "\ud800", "x", [], {}, [{}], {"a": []}),
    *({"type": "text"}, {"type": []}, [None], "2026-13-01T00:00:00Z", [[]] * 3, {"role": "user"}),
)


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Return bytes changed in one to four places; what is JSON mostly stays JSON."""
    for _ in range(random.randint(1, 4)):
        if random.random() < 0.6 and (found := _exchanged(data, random)) is not None:
            data = found
        else:
            data = _struck(data, others, random)
    return data


def inputs(corpus: Sequence[bytes], seed: str, count: int) -> Iterator[bytes]:
    """Yield the corpus itself, and so many inputs made of it."""
    random = Random(seed)
    yield b""
    yield from corpus
    for _ in range(count):
        yield mutated(random.choice(corpus), corpus, random)


def _struck(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    at, to = sorted(random.randrange(len(data) + 1) for _ in range(2))
    match random.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return data[:at] + data[to:]
        case 2:
            return data[:at] + random.choice(CHUNKS) + data[at:]
        case 3:
            return data[:at] + random.randbytes(random.randint(1, 4)) + data[at + 1 :]
        case 4:
            return data[:to] + data[at:]
    return data[:at] + random.choice(others)[at:]


def _exchanged(data: bytes, random: Random) -> bytes | None:
    """Return a JSON document, or JSON Lines, with one value exchanged; None for what is neither."""
    lines = data.split(b"\n")
    if len(lines) > 1 and lines[1].strip():
        number = random.randrange(len(lines))
        if (line := _exchanged(lines[number], random)) is None:
            return None
        return b"\n".join([*lines[:number], line, *lines[number + 1 :]])
    try:
        value = json.loads(data)
        places = list(_places(value))
        if not places:
            return None
        holder, key = random.choice(places)
        _change(holder, key, random)
        return json.dumps(value).encode()
    except (ValueError, RecursionError):
        return None


def _change(holder: Any, key: Any, random: Random) -> None:
    fate = random.randrange(8)
    if fate == 0:
        del holder[key]
    elif fate == 1 and isinstance(holder, dict):
        holder[random.choice(("id", "type", "role", "content", ""))] = holder.pop(key)
    elif fate == 2 and isinstance(holder, list):
        holder.insert(key, holder[random.randrange(len(holder))])
    else:
        holder[key] = random.choice(VALUES)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each object and list in a value, with the name or index of what it holds."""
    names: list[Any] = []
    if isinstance(value, dict):
        names = list(value)
    elif isinstance(value, list):
        names = list(range(len(value)))
    for name in names:
        yield value, name
        yield from _places(value[name])
