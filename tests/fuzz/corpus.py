"""Bytes that get far: what the tests know to be good, and the odd values of the storms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Final

from foldlog.core.anchor import Anchor
from foldlog.internal.v1.raw_pb2 import RawNewEvent
from foldlog.v1 import service_pb2
from foldlog.v1.message_pb2 import Message

from tests.converters import recorded
from tests.faults.ground import Ground
from tests.faults.oddities import JSON, TEXTS, Oddities
from tests.fuzz.stored import written
from tests.importers.reading import NAMES, bytes_of

SERVICE: Final = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
EACH: Final = 5
RULE: Final = '[[rules]]\nlabels = { a = "b" }\nnot_written_for = "30d"\naction = "delete"\n'


def _oddities() -> Oddities:
    return Oddities(Random("corpus"), [Ground("a", bytes(32), b"")])


def requests() -> Iterator[bytes]:
    """Yield requests of every RPC, its number before each."""
    oddities = _oddities()
    for number, method in enumerate(SERVICE.methods):
        for _ in range(EACH):
            yield bytes((number,)) + oddities.request(method.input_type)


def events() -> Iterator[bytes]:
    """Yield events to append."""
    oddities = _oddities()
    for _ in range(20 * EACH):
        yield oddities.request(RawNewEvent.DESCRIPTOR)


def messages() -> Iterator[bytes]:
    """Yield messages."""
    oddities = _oddities()
    for _ in range(20 * EACH):
        yield oddities.request(Message.DESCRIPTOR)


def free_json() -> Iterator[bytes]:
    """Yield texts that are JSON, and some that are not quite."""
    yield from (each.encode() for each in JSON if len(each) < 10_000)
    yield from provider_requests()


def files() -> Iterator[bytes]:
    """Yield a file of every format, an export among them."""
    yield from map(bytes_of, NAMES)
    yield written().export


def provider_requests() -> Iterator[bytes]:
    """Yield requests as agents send them."""
    for value in vars(recorded).values():
        if isinstance(value, dict) and not value.keys() & {"__name__"}:
            yield json.dumps(value).encode()


def rows() -> Iterator[bytes]:
    """Yield the states of rows, the index of each before it."""
    for index, state in enumerate(written().states):
        yield bytes((index,)) + state


def checkpoints() -> Iterator[bytes]:
    """Yield the state of a checkpoint."""
    yield written().checkpoint[1]


def texts() -> Iterator[bytes]:
    """Yield what operators write."""
    yield RULE.encode()
    yield b"a:" + b"A" * 43 + b"="
    key = {"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "A" * 43}
    yield json.dumps({"keys": [key]}).encode()
    anchor = Anchor("t", "s", 1, 0, bytes(32), "2026-01-01T00:00:00Z", bytes(32), bytes(64))
    yield anchor.line().encode()
    yield from (each if isinstance(each, bytes) else each.encode() for each in TEXTS)
