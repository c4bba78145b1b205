"""Terms: what sessions are found by, as digests of one length."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from hashlib import sha256

Term = tuple[int, bytes]


class Source(IntEnum):
    """What a row of foldlog_session_terms stands for."""

    LABEL = 1
    PARENT = 2
    KIND = 3
    KEY = 4
    KIND_AND_KEY = 5


def term(source: Source, *texts: str) -> Term:
    """Return what a filter on these texts looks for."""
    framed = b"".join(struct.pack(">I", len(each)) + each for each in (t.encode() for t in texts))
    return source, sha256(framed).digest()


def label_terms(labels: Iterable[tuple[str, str]]) -> list[Term]:
    """Return the terms of labels."""
    return [term(Source.LABEL, name, value) for name, value in labels]


def custom_terms(kind: str, key: str) -> Iterator[Term]:
    """Yield the terms of a custom event's kind and one of its keys, which is empty for none."""
    yield term(Source.KIND, kind)
    if key:
        yield term(Source.KEY, key)
        yield term(Source.KIND_AND_KEY, kind, key)
