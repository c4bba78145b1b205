"""Calls that are too large, or get too large once they are unpacked, while others work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import grpc
from foldlog.v1 import message_pb2, service_pb2
from grpc import aio

from tests.faults.extent import Extent
from tests.faults.harm import until_harm
from tests.faults.memory import MIB, peak_bytes, resident_bytes
from tests.faults.oddities import delimited, groups, nested
from tests.faults.outcome import Outcome
from tests.faults.rubbish import SERVICE
from tests.faults.workers import Workers
from tests.served import Served

RECEIVE = 16 * MIB
# A message is there as gRPC received it, as bytes, and decoded, and for a while so is the one
# before it: 120 to 190 MiB were measured, and 2,600 without the limit of fields.
MOST_GROWTH = 16 * RECEIVE
DEADLINE_S = 120.0
REFUSED = frozenset({grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED})
MESSAGES = service_pb2.SeedSessionRequest.MESSAGES_FIELD_NUMBER
PARTS = message_pb2.Message.PARTS_FIELD_NUMBER
LABELS = service_pb2.CreateSessionRequest.LABELS_FIELD_NUMBER
GZIP, PLAIN = grpc.Compression.Gzip, grpc.Compression.NoCompression


@dataclass(frozen=True, slots=True)
class Load:
    """A call that is to be refused."""

    name: str
    method: str
    data: bytes
    compression: grpc.Compression = PLAIN


def loads() -> Iterator[Load]:
    """Yield calls of each kind of size."""
    text = delimited(1, b"x" * (RECEIVE - 100))
    yield Load("a long text", "GetSession", text)
    yield Load("over what is received", "GetSession", text * 6)
    yield Load("a bomb", "GetSession", text * 20, GZIP)
    crowd = delimited(MESSAGES, b"") * (RECEIVE // 2 - 1)
    yield Load("a crowd", "SeedSession", crowd)
    yield Load("a compressed crowd", "SeedSession", crowd, GZIP)
    parts = delimited(PARTS, b"\x0a\0" * 7 * MIB)
    yield Load("a deep crowd", "SeedSession", delimited(MESSAGES, parts))
    yield Load("deep groups", "GetSession", groups(99, 2 * MIB))
    yield Load("deep messages", "SeedSession", nested(MESSAGES, 20_000))
    yield Load("many labels", "CreateSession", delimited(LABELS, b"\x0a\1a") * MIB)


async def wrong(channel: aio.Channel, load: Load) -> list[str]:
    """Make a call; say so if it is not refused."""
    call: Any = channel.unary_unary(f"/{SERVICE.full_name}/{load.method}")
    try:
        await call(load.data, timeout=DEADLINE_S, compression=load.compression)
    except aio.AioRpcError as error:
        told = f"{load.name}: {error.code().name} {error.details()}"
        return [] if error.code() in REFUSED else [told]
    return [f"{load.name}: taken"]


async def storm(served: Served, extent: Extent) -> Outcome:
    """Make each call, and go on for the share of a soak."""
    found, thrown = list[str](), 0
    before = resident_bytes(served)
    async with (
        aio.insecure_channel(served.address) as channel,
        Workers([served.address], extent.random, count=2, sessions=2) as workers,
    ):
        for _ in extent.rounds(short=1, long=1):
            for load in loads():
                found += await wrong(channel, load)
                thrown += 1
        await workers.answers(4)
    growth = peak_bytes(served) - before
    if growth > MOST_GROWTH:
        found.append(f"the server grew by {growth / MIB:.0f} MiB")
    outcome = workers.history.outcome(
        "calls too large",
        await workers.audit(),
        injected=thrown,
        control="without a limit of fields",
    )
    return replace(
        outcome,
        unsound=outcome.unsound + len(found),
        examples=(*found[:4], *outcome.examples),
        remark=f"at most {growth / MIB:.0f} MiB more memory",
    )


def started(serve: Callable[..., Served], **environment: str) -> Served:
    """Start a server that takes somewhat large calls."""
    return serve("sqlite-file", FOLDLOG_RECEIVE_BYTES=str(RECEIVE), **environment)


async def test_calls_that_are_too_large_cost_little_and_hinder_nobody(
    serve: Callable[..., Served], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    report(await storm(started(serve), extent))


async def test_control_fields_without_a_limit_cost_much_memory(
    serve: Callable[..., Served], extent: Extent, control: Callable[[Outcome], None]
) -> None:
    served = started(serve, FOLDLOG_LIMIT_REQUEST_FIELDS=str(10**9))
    outcome = await until_harm(lambda: storm(served, extent), "unsound", "grew")
    control(outcome)
    assert any("grew" in each for each in outcome.examples), outcome
