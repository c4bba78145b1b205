"""How many fields an encoded request has: told before it is decoded.

Decoded, an empty field is some forty times as large as its two bytes, and nothing else runs until
the last one is decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
LEAST_FIELD_BYTES = 2


def is_crowded(data: bytes, kind: type[Message], limit: int) -> bool:
    """Return whether an encoded message has more fields than the limit, nested ones counted.

    An element of a packed list counts as one. What does not decode counts as far as it does: the
    decoder refuses it there. Costs O(limit), and nothing for what is too short to be crowded.
    """
    if len(data) <= limit * LEAST_FIELD_BYTES:
        return False
    count = 0
    descriptor: Any = kind.DESCRIPTOR
    waiting: list[tuple[int, int, Descriptor]] = [(0, len(data), descriptor)]
    while waiting:
        at, stop, within = waiting.pop()
        shapes = _shapes(within)
        while at < stop and count <= limit:
            count += 1
            try:
                tag, at = _varint(data, at)
                size, at = _size(data, at, tag & 7)
            except IndexError:
                return count > limit
            field = shapes.get(tag >> 3)
            if field is not None and tag & 7 == DELIMITED:
                if field.message_type is None:
                    count += size
                else:
                    waiting.append((at, min(at + size, stop), field.message_type))
            at += size
    return count > limit


@cache
def _shapes(kind: Descriptor) -> Mapping[int, FieldDescriptor]:
    """Return the fields that hold others: messages, and packed lists."""
    return {
        field.number: field
        for field in kind.fields
        if field.message_type is not None or _is_packable(field)
    }


def _is_packable(field: FieldDescriptor) -> bool:
    return field.is_repeated and field.cpp_type != FieldDescriptor.CPPTYPE_STRING


def _size(data: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Return how long a value is, and where it begins."""
    if wire_type == DELIMITED:
        return _varint(data, at)
    if wire_type == VARINT:
        return _varint(data, at)[1] - at, at
    return {FIXED64: 8, FIXED32: 4}.get(wire_type, 0), at  # a group's ends have no value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and what follows it. Raises IndexError where there is none."""
    number = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise IndexError("a varint has at most ten bytes")
