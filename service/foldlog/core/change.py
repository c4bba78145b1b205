"""How one request departs from the one before it, and what kind of change that is."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from enum import IntEnum

from foldlog.core.canonical import canonical, json_equal
from foldlog.core.header import Header, differing_fields
from foldlog.core.invariant import CheckOptions, messages_equal
from foldlog.core.message import Message

BYTES_PER_TOKEN = 4

_ALL_CONTENT = CheckOptions(strict_system=True, compare_reasoning=True)


class ChangeKind(IntEnum):
    """The kinds of change. The numbers are those of the wire."""

    UNSPECIFIED = 0
    REPLACE = 1
    REWIND = 2
    HEADER = 3
    TOOLS_REORDERED = 4
    BYTES = 5


def header_change(
    before: Header | None, after: Header | None
) -> tuple[ChangeKind, tuple[str, ...]]:
    """Return how a header departs from the one before, and the fields that differ.

    Unlike in a check other bytes of the same JSON are a change: BYTES. No header is an empty one.
    """
    a, b = before or Header(), after or Header()
    named = differing_fields(a, b)
    if named == ("tools_json",) and _same_tools(a, b):
        return ChangeKind.TOOLS_REORDERED, named
    if named:
        return ChangeKind.HEADER, named
    other = tuple(f.name for f in fields(Header) if getattr(a, f.name) != getattr(b, f.name))
    return (ChangeKind.BYTES if other else ChangeKind.UNSPECIFIED), other


def _same_tools(a: Header, b: Header) -> bool:
    return Counter(map(canonical, a.tools_json)) == Counter(map(canonical, b.tools_json))


def same_but_for_bytes(a: Message, b: Message) -> bool:
    """Return whether two messages say the same and differ, if they do, in how JSON is written."""
    one, other = a.metadata_json, b.metadata_json
    if one is None or other is None:
        return one == other and messages_equal(a, b, _ALL_CONTENT)
    return json_equal(one, other) and messages_equal(a, b, _ALL_CONTENT)


def tokens_of(size_bytes: int) -> int:
    """Return about how many tokens so many bytes are."""
    return size_bytes // BYTES_PER_TOKEN
