"""Throws rubbish at every RPC of a served process, and says which answers are wrong."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Container, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from foldlog.v1 import service_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from tests.faults.oddities import Oddities

SERVICE: Final = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
METHODS: Final[tuple[MethodDescriptor, ...]] = tuple(SERVICE.methods)
ENDLESS: Final = frozenset({"WatchEvents", "WatchAllEvents"})
HANGS_S: Final = 90.0
GLANCE_S: Final = 0.2
ANSWERS_READ: Final = 50
EXAMPLES: Final = 20
DETAILS: Final = "grpc-status-details-bin"
# What no caller can be the cause of. Rubbish that was taken must not be damage afterwards.
OURS: Final = frozenset(
    {
        *(grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS),
        *(grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED),
    }
)


@dataclass(slots=True)
class Answers:
    """What calls came to: how many by code, and what is wrong with some."""

    codes: Counter[str] = field(default_factory=Counter)
    by_method: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many calls were made."""
        return self.codes.total()

    def note(self, method: str, sent: Sequence[bytes], code: grpc.StatusCode, why: str) -> None:
        """Count an answer, and keep what is wrong with it."""
        self.codes[code.name] += 1
        self.by_method[method, code.name] += 1
        if why:
            shown = " ".join(each[:200].hex() for each in sent)
            self.wrong.append(f"{method}: {code.name} {why}: {shown}")

    def examples(self) -> tuple[str, ...]:
        """Return some of what is wrong."""
        return tuple(self.wrong[:EXAMPLES])


async def call(
    channel: aio.Channel,
    method: str,
    streams: tuple[bool, bool],
    sent: Sequence[bytes],
    ours: Container[grpc.StatusCode] = OURS,
) -> tuple[grpc.StatusCode, str]:
    """Make a call with these bytes; return its code, and what is wrong with the answer."""
    is_endless = method in ENDLESS
    made = _begun(channel, method, streams, sent, GLANCE_S if is_endless else HANGS_S)
    try:
        if streams[1]:
            await _read(made)
        else:
            await made
    except aio.AioRpcError as error:
        if is_endless and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            return error.code(), ""
        return error.code(), _wrong(error, ours)
    except asyncio.CancelledError:
        if not made.cancelled():
            raise
    return grpc.StatusCode.OK, ""


def _begun(
    channel: Any,
    method: str,
    streams: tuple[bool, bool],
    sent: Sequence[bytes],
    timeout_s: float,
) -> Any:
    path = f"/{SERVICE.full_name}/{method}"
    match streams:
        case (False, False):
            return channel.unary_unary(path)(sent[0], timeout=timeout_s)
        case (False, True):
            return channel.unary_stream(path)(sent[0], timeout=timeout_s)
        case (True, False):
            return channel.stream_unary(path)(_each(sent), timeout=timeout_s)
    return channel.stream_stream(path)(_each(sent), timeout=timeout_s)


async def _each(sent: Sequence[bytes]) -> AsyncIterator[bytes]:
    for element in sent:
        yield element


async def _read(made: Any) -> None:
    """Read some answers of a stream; whoever has enough goes away."""
    count = 0
    async for _ in made:
        count += 1
        if count == ANSWERS_READ:
            made.cancel()
            return


def _wrong(error: aio.AioRpcError, ours: Container[grpc.StatusCode]) -> str:
    told = f"{error.details()}"[:200]
    if error.code() in ours:
        return told
    details = dict(error.trailing_metadata() or ()).get(DETAILS)
    if not isinstance(details, bytes) or not _reason(details):
        return f"it does not say why: {told}"
    return ""


def _reason(details: bytes) -> str:
    info = ErrorInfo()
    for detail in Status.FromString(details).details:
        if detail.Unpack(info):
            return str(info.reason)
    return ""


class Thrower:
    """Throws rubbish by structure at every RPC in turn."""

    def __init__(
        self,
        channel: aio.Channel,
        oddities: Oddities,
        ours: Container[grpc.StatusCode] = OURS,
    ) -> None:
        self.answers = Answers()
        self._ours = ours
        self._channel = channel
        self._oddities = oddities

    async def throw(self, rounds: int = 1) -> None:
        """Call every RPC so often."""
        for _ in range(rounds):
            for method in METHODS:
                await self.throw_at(method)

    async def throw_at(self, method: MethodDescriptor) -> None:
        """Call one RPC."""
        sent = self._sent(method)
        streams = method.client_streaming, method.server_streaming
        code, why = await call(self._channel, method.name, streams, sent, self._ours)
        self.answers.note(method.name, sent, code, why)

    def _sent(self, method: MethodDescriptor) -> list[bytes]:
        if not method.client_streaming:
            return [self._oddities.request(method.input_type)]
        choices = [each.name for each in method.input_type.fields if each.containing_oneof]
        later = self._oddities.random.choice((0, 1, 1, 1, 4))
        first = choices[0] if not self._oddities.is_odd() else choices[-1]
        chosen = [first, *(choices[1] for _ in range(later))]
        return [self._oddities.request(method.input_type, each) for each in chosen]
