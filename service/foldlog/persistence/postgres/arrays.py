"""PostgreSQL's binary form of arrays, written without the driver's adapters, which cost far more.

The form is that of array_recv in the server's source, src/backend/utils/adt/arrayfuncs.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class ElementType(NamedTuple):
    """The OIDs of a type and of its array type (pg_type.dat)."""

    oid: int
    array_oid: int


TEXT = ElementType(25, 1009)
BYTEA = ElementType(17, 1001)
UUID = ElementType(2950, 2951)
BIGINT = ElementType(20, 1016)

bigint = struct.Struct("!q").pack
_header = struct.Struct("!iiIii").pack
_length = struct.Struct("!i").pack
_NULL = _length(-1)


def array(kind: ElementType, elements: Sequence[bytes | None]) -> bytes:
    """Return an array of elements in their own binary form; None is NULL."""
    parts = [_header(1, None in elements, kind.oid, len(elements), 1)]
    for element in elements:
        if element is None:
            parts.append(_NULL)
        else:
            parts += (_length(len(element)), element)
    return b"".join(parts)


def bigints(numbers: Iterable[int]) -> bytes:
    """Return an array of bigint."""
    return array(BIGINT, [bigint(number) for number in numbers])
