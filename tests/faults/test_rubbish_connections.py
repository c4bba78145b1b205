"""Rubbish below gRPC: bytes that are no HTTP/2, calls never made whole, and whoever hangs up."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import grpc
import pytest
import trustme
from foldlog.v1 import service_pb2
from grpc import aio

from tests.contract.calls import DEADLINE_S
from tests.faults.extent import Extent
from tests.faults.frames import OPENING, Junk, call, is_over, junk, message, sent
from tests.faults.harm import until_harm
from tests.faults.memory import MIB, resident_bytes
from tests.faults.outcome import Outcome
from tests.faults.rubbish import SERVICE
from tests.faults.waiting import until
from tests.faults.workers import Workers
from tests.served import Served

PATH: Final = f"/{SERVICE.full_name}/GetSession"
WATCH: Final = f"/{SERVICE.full_name}/WatchAllEvents"
REQUEST: Final = service_pb2.GetSessionRequest(session_id="a").SerializeToString()
MOST_GROWTH: Final = 192 * MIB
MOST_FILES: Final = 40
BOUNDS: Final = ("KEEPALIVE", "HANDSHAKE_TIMEOUT", "REQUEST_TIMEOUT")
SHORT: Final = {f"FOLDLOG_{name}_S": "2" for name in BOUNDS}
ENDLESS: Final = {f"FOLDLOG_{name}_S": "3600" for name in BOUNDS}


def files(served: Served) -> int:
    """Return how many files, connections among them, a server has open."""
    return len(os.listdir(f"/proc/{served.process.pid}/fd"))


async def outlasting(served: Served, thrown: Sequence[Junk], patience_s: float) -> list[str]:
    """Send each on a connection of its own, and say which of them the server does not end.

    None of them says anything more, not even that it is there.
    """
    waiting: dict[str, socket.socket] = {}
    for each in thrown:
        waiting[each.name] = await asyncio.to_thread(sent, served.address, each.data)

    def ended() -> bool:
        for name in [name for name, connection in waiting.items() if is_over(connection)]:
            waiting.pop(name).close()
        return not waiting

    with suppress(TimeoutError):
        await until(ended, patience_s)
    for connection in waiting.values():
        connection.close()
    return [f"{name}: is borne for ever" for name in waiting]


async def hang_up(served: Served, count: int) -> None:
    """Open connections and leave each in the middle of something."""
    whole = OPENING + call(1, PATH, message(REQUEST))
    cuts = Random(served.address)

    def leave() -> None:
        for _ in range(count):
            sent(served.address, whole[: cuts.randrange(len(whole))]).close()

    await asyncio.to_thread(leave)


async def break_off(served: Served, count: int) -> None:
    """Begin watches and calls, and cancel each."""
    async with aio.insecure_channel(served.address) as channel:
        watch: Any = channel.unary_stream(WATCH)
        get: Any = channel.unary_unary(PATH)
        for _ in range(count // 50):
            begun = [each for _ in range(25) for each in (watch(b""), get(REQUEST))]
            await asyncio.sleep(0)  # so that some of them have begun
            for each in begun:
                each.cancel()


async def storm(served: Served, extent: Extent, patience_s: float, dropped: int) -> Outcome:
    """Throw everything, and go on for the share of a soak."""
    wrong, thrown = list[str](), 0
    async with Workers([served.address], extent.random, count=2, sessions=2) as workers:
        await workers.answers(4)
        before, open_before = resident_bytes(served), files(served)
        for _ in extent.rounds(short=1, long=1):
            each = list(junk(Random(extent.random.random()), PATH))
            wrong += await outlasting(served, each, patience_s)
            await hang_up(served, dropped)
            await break_off(served, dropped)
            thrown += len(each) + 2 * dropped
        await workers.answers(4)
        with suppress(TimeoutError):
            await until(lambda: files(served) <= open_before + MOST_FILES, patience_s)
        growth, left_open = resident_bytes(served) - before, files(served) - open_before
    if left_open > MOST_FILES:
        wrong.append(f"{left_open} files are still open")
    if growth > MOST_GROWTH:
        wrong.append(f"the server grew by {growth / MIB:.0f} MiB")
    if "call.failed" in served.output_tail(10 * MIB):
        wrong.append("a call failed by a fault of the service")
    outcome = workers.history.outcome(
        "rubbish below gRPC",
        await workers.audit(),
        injected=thrown,
        control="without bounds of waiting",
    )
    return replace(
        outcome,
        unsound=outcome.unsound + len(wrong),
        examples=(*wrong[:4], *outcome.examples),
        remark=f"{growth / MIB:.0f} MiB more memory",
    )


async def test_rubbish_below_grpc_is_ended_and_hinders_nobody(
    serve: Callable[..., Served], extent: Extent, report: Callable[[Outcome], None]
) -> None:
    report(await storm(serve("sqlite-file", **SHORT), extent, patience_s=60, dropped=500))


async def test_control_without_bounds_it_is_borne_for_ever(
    serve: Callable[..., Served], extent: Extent, control: Callable[[Outcome], None]
) -> None:
    served = serve("sqlite-file", **ENDLESS)
    outcome = await until_harm(
        lambda: storm(served, extent, patience_s=4, dropped=50), "unsound", "for ever"
    )
    control(outcome)
    assert any("for ever" in each for each in outcome.examples), outcome


async def test_a_port_with_tls_ends_it_as_well(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    authority, certificate = trustme.CA(), tmp_path / "certificate.pem"
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(str(certificate))
    served = serve("sqlite-memory", FOLDLOG_TLS_CERTIFICATE_FILE=str(certificate), **SHORT)
    assert not await outlasting(served, list(junk(Random("TLS"), PATH)), patience_s=60)
    trusted = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    async with aio.secure_channel(served.address, trusted) as channel:
        get: Any = channel.unary_unary(PATH)
        with pytest.raises(aio.AioRpcError, match="there is no session a"):
            await get(REQUEST, timeout=DEADLINE_S)


def test_connections_above_the_limit_are_closed_and_the_others_served(
    serve: Callable[..., Served],
) -> None:
    served = serve("sqlite-memory", FOLDLOG_CONNECTIONS="5", **ENDLESS)
    served.stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S)
    opened = [sent(served.address, OPENING) for _ in range(20)]
    asyncio.run(until(lambda: sum(map(is_over, opened)) == 16))
    served.stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S)
    for each in opened:
        each.close()
