"""Rubbish by structure: encoded messages of any type, with odd values where they can stand.

Bytes are written here and not by protobuf, which would refuse half of what is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tests.faults.ground import Ground

DEEPEST: Final = 6
# How many of a message's values are odd: none, so that a call gets far, up to many.
SHARES: Final = (0.0, 0.0, 0.02, 0.1, 0.3)
# What is demanded of a head is mostly not met.
SELDOM: Final = frozenset(
    {
        *("expected_next_seq", "writer_epoch", "expected_epoch", "min_next_seq", "at_seq", "time"),
        *("replace", "validate_only", "page_token", "after_cursor", "parent_session_id", "mode"),
        *("create_time", "require_balanced", "metadata_json", "extra_json", "trim", "attachment"),
    }
)
ALWAYS: Final = frozenset(
    {
        *("session_id", "request_id", "events", "messages", "body", "role", "kind", "purpose"),
        *("tool_call_id", "reason", "header", "sent", "parts", "entries", "first_seq", "last_seq"),
    }
)

LARGE: Final = (2**31 - 1, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2**31)
TIMES: Final = (
    0,
    1,
    -62135596800,
    -62135596801,
    253402300799,
    253402300800,
    -1,
    999_999_999,
    10**9,
)
BAD_UTF8: Final = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok\x80")
TEXTS: Final = (
    *(b"", b"\0", b"a\0b", b" ", b"..", b"../../etc/passwd", b"\n", b"%s%n", b"' OR 1=1 --"),
    *("\u202e\u0301" * 20, "\U0010ffff", "\ufeff", "e\u0301", "-1", "1" * 5_000, "null", "x" * 600),
)
JSON: Final = (
    *(
        "",
        " ",
        "{}",
        "[]",
        "null",
        "0",
        '"',
        "{",
        "NaN",
        "-Infinity",
        "1e999999",
        "-0",
        "1" * 6_000,
    ),
    *('{"a":1,"a":2}', r'{"a":"\ud800"}', r'"\ud83d\ude00"', '"\x00"', "\ufeff{}", "01", "{}{}"),
    *(
        "[" * 127 + "]" * 127,
        "[" * 5_000 + "]" * 5_000,
        '{"a":' * 129 + "1" + "}" * 129,
        "[" * 90_000,
    ),
    *("{" + ",".join(f'"{n}":{n}' for n in range(3_000)) + "}", '"' + "\\" * 9_001, "1E-400"),
    *('{"name":"f","parameters":{}}', '{"temperature":0.5,"stop":["a"]}', '{"max_tokens":1e9999}'),
)


def varint(number: int) -> bytes:
    """Return a number of up to 64 bits as protobuf writes it; a negative one has ten bytes."""
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def tagged(number: int, wire_type: int) -> bytes:
    """Return the tag of a field."""
    return varint(number << 3 | wire_type)


def delimited(number: int, data: bytes) -> bytes:
    """Return a field of length-delimited bytes."""
    return tagged(number, 2) + varint(len(data)) + data


def nested(number: int, depth: int) -> bytes:
    """Return a field of this number within itself, so often."""
    data = b""
    for _ in range(depth):
        data = delimited(number, data)
    return data


def groups(number: int, depth: int) -> bytes:
    """Return groups within groups, a form that protobuf has not used for long but still reads."""
    return tagged(number, 3) * depth + tagged(number, 4) * depth


class Oddities:
    """Makes messages by chance: a few of their values are odd, and some of them are damaged.

    They name what is in `grounds`, so that many calls get as far as a session.
    """

    def __init__(
        self, random: Random, grounds: Sequence[Ground], shares: Sequence[float] = SHARES
    ) -> None:
        self.random = random
        self._grounds = grounds
        self._shares = shares
        self._odd = 0.0
        self._seq = 100
        self._scalars: dict[int, Callable[[FieldDescriptor], bytes]] = {
            FieldDescriptor.CPPTYPE_STRING: self._length_delimited,
            FieldDescriptor.CPPTYPE_BOOL: lambda _: varint(random.choice((0, 1, 1, 2))),
            FieldDescriptor.CPPTYPE_ENUM: lambda _: varint(self._choice(range(1, 4), LARGE)),
            FieldDescriptor.CPPTYPE_DOUBLE: lambda _: random.randbytes(8),
            FieldDescriptor.CPPTYPE_FLOAT: lambda _: random.randbytes(4),
        }

    def is_odd(self) -> bool:
        """Tell whether the next value is to be odd."""
        return self.random.random() < self._odd

    def _choice(self, usual: Sequence[int], odd: Sequence[int]) -> int:
        return self.random.choice(odd if self.is_odd() else usual)

    def request(self, kind: Descriptor, chosen: str = "") -> bytes:
        """Return bytes for a message of this type: whole, damaged, or anything at all."""
        self._odd = self.random.choice(self._shares)
        fate = self.random.random()
        if fate < self._odd / 5:
            return self.random.randbytes(self.random.randrange(200))
        encoded = self.message(kind, chosen)
        return self.damaged(encoded) if fate < self._odd else encoded

    def message(self, kind: Descriptor, chosen: str = "", depth: int = 0) -> bytes:
        """Return an encoded message; of a choice between fields the one chosen, or any one."""
        taken = {self._one_of(choice.fields, chosen) for choice in kind.oneofs}
        return b"".join(
            self.field(field, depth)
            for field in kind.fields
            if self.is_odd() or self._is_set(field, taken)
        )

    def _one_of(self, fields: Sequence[FieldDescriptor], chosen: str) -> int:
        for field in fields:
            if field.name == chosen:
                return field.number
        is_optional = len(fields) == 1
        none = [0, 0] if is_optional else []
        return self.random.choice([*none, *(field.number for field in fields)])

    def _is_set(self, field: FieldDescriptor, taken: set[int]) -> bool:
        if field.containing_oneof is not None and field.number not in taken:
            return False
        if field.name in SELDOM:
            return self.random.random() < 0.1
        is_always = field.containing_oneof is not None or field.name in ALWAYS
        return self.random.random() < (0.97 if is_always else 0.5)

    def field(self, field: FieldDescriptor, depth: int = 0) -> bytes:
        """Return a field of a message, once or more often where it is repeated."""
        count = self.random.choice((1, 1, 2, 5)) if field.is_repeated else 1
        return b"".join(self._value(field, depth) for _ in range(count))

    def _value(self, field: FieldDescriptor, depth: int) -> bytes:
        if field.message_type is not None:
            inner = b"" if depth >= DEEPEST else self.message(field.message_type, depth=depth + 1)
            return delimited(field.number, inner)
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return delimited(field.number, self._length_delimited(field))
        value = self._scalars.get(field.cpp_type, self._whole_number)(field)
        wire_type = {
            FieldDescriptor.CPPTYPE_DOUBLE: 1,
            FieldDescriptor.CPPTYPE_FLOAT: 5,
        }.get(field.cpp_type, 0)
        return tagged(field.number, wire_type) + value

    def _whole_number(self, field: FieldDescriptor) -> bytes:
        if field.name in ("seconds", "nanos"):
            return varint(self._choice(TIMES[:2], TIMES))
        if field.name == "seq":
            self._seq += 1
            return varint(self._choice((self._seq,), (-1, 0, *LARGE)))
        return varint(self._choice(range(10), (-1, -2, *LARGE)))

    def _length_delimited(self, field: FieldDescriptor) -> bytes:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return self._bytes(field.name)
        if self.random.random() < self._odd / 4:
            return self.random.choice(BAD_UTF8)
        return self._text(field.name).encode()

    def _bytes(self, name: str) -> bytes:
        if self.is_odd():
            return self.random.randbytes(self.random.choice((0, 1, 16, 31, 32, 33, 70_000)))
        ground = self.random.choice(self._grounds)
        return {"sha256": ground.digest, "data": ground.export}.get(name, b"")

    def _text(self, name: str) -> str:
        if name.endswith("_json") or name == "json":
            return self.random.choice(JSON[-3:] if not self.is_odd() else JSON)
        if self.is_odd():
            odd = self.random.choice(TEXTS)
            return odd if isinstance(odd, str) else odd.decode()
        if name.endswith("session_id"):
            if self.random.randrange(6) == 0:
                return f"new-{self.random.getrandbits(32)}"
            return self.random.choice(self._grounds).session_id
        if name in ("request_id", "media_type"):
            return f"text/{self.random.getrandbits(32)}"
        return f"{name}-{self.random.randrange(3)}"

    def damaged(self, data: bytes) -> bytes:
        """Return bytes cut, changed, doubled in part, or with what no type knows."""
        at = self.random.randrange(len(data) + 1)
        damage = self.random.randrange(6)
        if damage == 0:
            return data[:at]
        if damage == 1:
            return data[:at] + self.random.randbytes(self.random.randrange(1, 9)) + data[at + 2 :]
        if damage == 2:
            return data + data[at:]
        if damage == 3:
            return data + groups(self.random.choice((99, 3, 2**29 - 1)), 5_000)
        if damage == 4:
            return data + nested(self.random.randrange(1, 20), self.random.choice((50, 2_000)))
        return data + delimited(self.random.randrange(1, 20), self.random.randbytes(20))
