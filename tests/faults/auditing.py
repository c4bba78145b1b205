"""Reads back what a storm's workers wrote, and holds it to what they were told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

import foldlog
from foldlog import AsyncClient, AsyncSession, errors

from tests.faults.histories import Entry, Findings, Fork, Forked, Operation, check

INDEX_DEADLINE_S: Final = 30.0


async def audit(
    client: AsyncClient, operations: Mapping[str, list[Operation]], labels: Mapping[str, str]
) -> Findings:
    """Check each session's history and chain, and what the listing of these labels says.

    A fork's operations come after its parent's.
    """
    findings = Findings()
    logs: dict[str, list[Entry]] = {}
    inherited: dict[str, list[Entry]] = {}
    for session_id, mine in operations.items():
        try:
            log = [entry async for entry in _log(client.session(session_id))]
        except errors.FoldlogError as error:
            findings.lost.append(f"{session_id} cannot be read: {error}")
            continue
        logs[session_id] = log
        inherited |= _inherited(mine, log)
        findings.add(check(mine, log, inherited.get(session_id, ())))
        findings.unsound += await _faults(client.session(session_id), len(log))
    heads = {session_id: len(log) for session_id, log in logs.items()}
    # What was lost is perhaps listed for ever: that is not waited for.
    patience_s = 0.0 if findings else INDEX_DEADLINE_S
    if (listed := await _listed(client, labels, heads, patience_s)) != heads:
        findings.unsound.append(f"the listing says {listed}, the sessions {heads}")
    return findings


def _inherited(operations: list[Operation], log: list[Entry]) -> dict[str, list[Entry]]:
    """Return what each child made of a session has from it."""
    return {
        operation.asked.child_id: log[: operation.answer.next_seq]
        for operation in operations
        if isinstance(operation.asked, Fork) and isinstance(operation.answer, Forked)
    }


async def _faults(session: AsyncSession, next_seq: int) -> list[str]:
    """Have the chain recomputed, over as many events as were read."""
    verified = await session.verify()
    if verified.next_seq != next_seq:
        return [f"{session.session_id}: {verified.next_seq} verified, {next_seq} read"]
    return [f"{session.session_id}: {fault}" for fault in verified.faults]


async def _log(session: AsyncSession) -> AsyncIterator[Entry]:
    async for event in session.events():
        body = event.body
        yield Entry(
            seq=event.seq,
            request_id=event.request_id,
            text=str(body.content) if isinstance(body, foldlog.Message) else None,
            replaces=(event.replace.start, event.replace.stop) if event.replace else None,
            rewind_to=body.to_seq if isinstance(body, foldlog.Rewind) else None,
        )


async def _listed(
    client: AsyncClient, labels: Mapping[str, str], wanted: Mapping[str, int], patience_s: float
) -> dict[str, int]:
    """Return next_seq as the listing has it, once it agrees or had the time to."""
    deadline = time.monotonic() + patience_s
    while True:
        listed = {each.session_id: each.next_seq async for each in client.list(labels=labels)}
        if listed == wanted or time.monotonic() > deadline:
            return listed
        await asyncio.sleep(0.05)
