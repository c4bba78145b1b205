"""Large calls leave the loop to the others: no turn of it takes what their work takes.

Each is held to a part of its own work, done at once and timed on a processor in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from foldlog.application.decisions import Guard
from foldlog.application.incoming import incoming_events
from foldlog.application.tenant import Tenant
from foldlog.codec import message_from_proto
from foldlog.core.pairing import unanswered
from foldlog.internal.v1 import raw_pb2 as raw
from foldlog.server.stream import write_of
from foldlog.settings import Limits
from foldlog.v1 import event_pb2, message_pb2
from foldlog.v1.service_pb2 import CheckRequestRequest

from tests.contract import said
from tests.integration.observed import observed
from tests.integration.turns import metered, without_collector

PART = 3  # the longest turn is to be under this part of the work


def cost_s(work: Callable[[], object]) -> float:
    with without_collector():
        before = time.thread_time()
        work()
        return time.thread_time() - before


def raw_of(events: Sequence[event_pb2.NewEvent]) -> list[raw.RawNewEvent]:
    return [raw.RawNewEvent.FromString(each.SerializeToString()) for each in events]


def read(events: Sequence[raw.RawNewEvent], limits: Limits) -> None:
    """Judge a batch, and make the values of its messages."""
    for event in incoming_events(events, limits):
        if event.message is not None:
            message_from_proto(event.message)


async def append(tenant: Tenant, *events: event_pb2.NewEvent) -> None:
    request = raw.RawAppendEventsRequest(session_id="s", events=raw_of(events))
    await tenant.writing.write("s", await write_of(tenant, request))


def calling(count: int, prefix: str = "c") -> event_pb2.NewEvent:
    return said.assistant("a", *[f"{prefix}{number}" for number in range(count)])


def of_parts(count: int) -> event_pb2.NewEvent:
    message = message_pb2.Message(role=message_pb2.ROLE_ASSISTANT)
    message.parts.parts.extend(message_pb2.Part(text="") for _ in range(count))
    return said.event(message)


def of_numbers(count: int) -> event_pb2.NewEvent:
    numbers = ",".join(["1"] * count)
    return said.user("x", metadata_json=f'{{"numbers":[{numbers}]}}')


BATCHES = {
    "a thousand messages": [calling(50, f"{number}.") for number in range(1_000)],
    "one of many calls": [calling(20_000)],
    "one of many parts": [of_parts(100_000)],
    "one of many numbers": [of_numbers(400_000)],
    "replaces by many calls": [
        said.replacing(calling(500, f"{at:x}."), at, at) for at in range(150)
    ],
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
async def test_an_append(batch: list[event_pb2.NewEvent], tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        await seen.tenant.writing.create("s", "", {}, "")
        await append(seen.tenant, *[said.user("x") for _ in range(150)])
        work_s = cost_s(lambda: read(raw_of(batch), seen.tenant.settings.limits))
        async with metered() as turns:
            await append(seen.tenant, *batch)
        assert turns.longest_s < work_s / PART


async def test_a_step(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        await seen.tenant.writing.create("s", "", {}, "")
        events = raw_of([calling(100, f"{number}.") for number in range(500)])
        request = raw.RawBeginStepRequest(session_id="s", events=events)
        request.header.provider, request.header.model = "p", "m"
        work_s = cost_s(lambda: read(events, seen.tenant.settings.limits))
        async with metered() as turns:
            begun = await seen.tenant.steps.begin(request)
        assert len(begun.built.state.entries) == 500
        assert turns.longest_s < work_s / PART


async def test_a_check(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        await seen.tenant.writing.create("s", "", {}, "")
        await append(seen.tenant, said.user("x"))
        messages = [said.user_message(f"message {number}") for number in range(30_000)]
        request = CheckRequestRequest(session_id="s", messages=messages)
        work_s = cost_s(lambda: [message_from_proto(each) for each in request.messages])
        async with metered() as turns:
            found = await seen.tenant.checking.check(request)
        assert found.violation is not None
        assert turns.longest_s < work_s / PART


async def called(tenant: Tenant) -> float:
    """Make a session of few messages and many calls; return what looking for open ones costs."""
    await tenant.writing.create("s", "", {}, "")
    await append(tenant, said.turn_start(), said.user("x"))
    for number in range(5):
        await append(tenant, calling(10_000, f"{number}."))
    fold = await tenant.reading.fold("s")
    entries = tuple(fold.fold.surface)
    return cost_s(lambda: unanswered(entries))


async def test_a_fork_and_a_rewind(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        work_s = await called(seen.tenant)
        async with metered() as turns:
            await seen.tenant.writing.fork("s", "", "child", None, {}, "", False)
            await seen.tenant.writing.rewind("s", "", 6, Guard(), False)
        assert turns.longest_s < work_s / PART


async def test_a_small_replace_among_many_calls(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        work_s = await called(seen.tenant)
        async with metered() as turns:
            await append(seen.tenant, said.replacing(said.assistant("y", "c"), 1, 1))
        assert turns.longest_s < work_s / PART


async def test_a_plan_of_many_calls(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        work_s = await called(seen.tenant)
        async with metered() as turns:
            plan = await seen.tenant.recovery.plan("s")
        assert len(plan.owed_calls) == 50_000
        assert turns.longest_s < work_s / PART
