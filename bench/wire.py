"""Requests as bytes: encoded before the clock runs, so that a load generator costs little.

A request differs from the one before in its request id alone, which protobuf lets stand last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, cycle
from typing import Final
from uuid import uuid4

from foldlog.v1.event_pb2 import NewEvent
from foldlog.v1.service_pb2 import AppendEventsRequest, AppendStreamResponse

from bench import encoding, workload

SERVICE: Final = "/foldlog.v1.SessionService/"
VARIETY: Final = 64


class RefusedError(RuntimeError):
    """A server refused what it was to take."""


def batches(session_id: str, size: int, seed: int) -> Sequence[bytes]:
    """Return different requests to append so many messages, each without a request id."""
    turns = workload.turns(seed)
    events = [encoding.event(each) for _ in range(VARIETY) for each in next(turns)]
    starts = range(0, len(events) - size + 1, size)
    return [_batch(session_id, events[start : start + size]) for start in starts]


def _batch(session_id: str, events: Sequence[NewEvent]) -> bytes:
    return AppendEventsRequest(session_id=session_id, events=events).SerializeToString()


def appends(session_id: str, size: int = 1, seed: int = 1) -> Iterator[bytes]:
    """Yield requests without end, each with a request id of its own as the client library's."""
    prefix = uuid4().hex[:16]
    for number, batch in zip(count(), cycle(batches(session_id, size, seed)), strict=False):
        yield batch + field(AppendEventsRequest.REQUEST_ID_FIELD_NUMBER, _id(prefix, number))


def _id(prefix: str, number: int) -> bytes:
    return f"{prefix}{number:016x}".encode()


def elements(session_id: str, size: int = 1, seed: int = 1) -> Iterator[bytes]:
    """Yield the same as elements of an AppendStream, numbered from 1."""
    for number, request in enumerate(appends(session_id, size, seed), 1):
        yield field(1, request) + b"\x18" + varint(number)


def field(number: int, value: bytes) -> bytes:
    """Return a field of bytes or text as protobuf's wire format has it."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(number: int) -> bytes:
    """Return a whole number in protobuf's variable length."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def require_appended(answer: bytes) -> None:
    """Raise RefusedError unless an element was written."""
    read = AppendStreamResponse.FromString(answer)
    if read.WhichOneof("result") != "appended":
        raise RefusedError(read.error.message)
