"""Facts of structure, which do not depend on the machine: rows written, queries made, rows read."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from foldlog.v1.check_pb2 import CheckOptions
from foldlog.v1.message_pb2 import Message
from foldlog.v1.service_pb2 import CheckRequestRequest, FoldedMessage

from tests.integration.observed import append, grown, observed, said


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'foldlog.db'}"
        return
    from tests import postgres

    with postgres.database() as found:
        yield found


async def test_forking_a_long_session_stores_one_row(url: str) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "long", 10_000)
        before = seen.tenant.services.store.recorder.max_notification_id()
        await seen.tenant.writing.fork("long", "", "child", 5_000, {}, "", False)
        changes = seen.tenant.services.store.recorder.select_changes(before or 0, 10)
    assert len(changes) == 1


@pytest.mark.parametrize("length", [100, 10_000])
async def test_forking_a_session_at_hand_reads_no_message(url: str, length: int) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "long", length)
        await seen.tenant.reading.fold("long")
        await seen.tenant.lanes.pool.close()
        seen.forget()
        await seen.tenant.writing.fork("long", "", "child", length // 2, {}, "", False)
    # The row whose chain value the child's goes on from, and the one that has the key to read it.
    assert sum(seen.rows.values()) <= 2


async def test_an_append_makes_the_same_queries_whatever_the_length(url: str) -> None:
    async with observed(url) as seen:
        made = []
        for name, length in (("short", 10), ("long", 100_000)):
            await grown(seen.tenant, name, length)
            await append(seen.tenant, name, [said(2, "warm")])
            await (
                seen.tenant.lanes.pool.close()
            )  # a checkpoint that is owed is no part of the append
            seen.forget()
            await append(seen.tenant, name, [said(2, "one more")])
            made.append(Counter(seen.calls))
    assert made[0] == made[1]
    assert made[1]["insert_events"] == 1


@pytest.mark.parametrize("length", [10, 30_000])
async def test_an_append_after_a_restart_reads_a_checkpoint_and_a_tail(
    url: str, length: int
) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "session", length)
        await seen.tenant.lanes.pool.close()
    async with observed(url) as seen:
        await append(seen.tenant, "session", [said(2, "after")])
    assert sum(seen.calls.values()) <= 6
    assert sum(seen.rows.values()) <= 1_100


async def test_opening_a_session_after_a_restart_reads_no_row_twice(url: str) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "parent", 2_500)
        compacted = said(1, "summary")
        compacted.replace.positions.start, compacted.replace.positions.stop = 100, 2_000
        await append(seen.tenant, "parent", [compacted])
        await seen.tenant.writing.fork("parent", "", "child", None, {}, "", False)
        await append(seen.tenant, "child", [said(2, "own")])
        await seen.tenant.lanes.pool.close()
    async with observed(url) as seen:
        folded = await seen.tenant.reading.fold("child")
        await append(seen.tenant, "child", [said(2, "more")])
    assert len(folded.fold.surface) == 100 + 1 + 499 + 2
    twice = {key: n for key, n in seen.rows.items() if n > 1 and key[1] != 1}
    assert not twice


async def test_reading_a_session_after_a_restart_reads_the_rows_of_its_checkpoint_once(
    url: str,
) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "s", 2_000)
        await seen.tenant.lanes.pool.close()
    async with observed(url) as seen:
        folded = await seen.tenant.reading.fold("s", for_messages=True)
        pieces = [piece async for piece in seen.tenant.reading.messages(list(folded.fold.surface))]
    found = [FoldedMessage.FromString(each) for piece in pieces for each in piece]
    assert [each.message.text for each in found] == [f"message {i}" for i in range(2_000)]
    assert max(seen.rows.values()) == 1


async def test_opening_a_compacted_session_reads_what_is_live(url: str) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "session", 5_000)
        compacted = said(1, "summary")
        compacted.replace.positions.start, compacted.replace.positions.stop = 0, 4_979
        await append(seen.tenant, "session", [compacted])
        await append(seen.tenant, "session", [said(2, "said since")] * 999)
        await seen.tenant.lanes.pool.close()
    async with observed(url) as seen:
        folded = await seen.tenant.reading.fold("session")
        live = len(folded.fold.surface)
    assert live == 20 + 1 + 999
    assert sum(seen.rows.values()) <= live + 1  # and the row that says what the session is


async def test_opening_what_was_just_compacted_reads_little_more_than_what_is_live(
    url: str,
) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "session", 5_000)
        compacted = said(1, "summary")
        compacted.replace.positions.start, compacted.replace.positions.stop = 0, 4_899
        await append(seen.tenant, "session", [compacted])
        await append(seen.tenant, "session", [said(2, "after")])
        await seen.tenant.lanes.pool.close()
    async with observed(url) as seen:
        folded = await seen.tenant.reading.fold("session")
    assert len(folded.fold.surface) == 102
    assert sum(seen.rows.values()) <= 110


async def test_a_full_check_lets_appends_through(url: str) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "long", 10_000)
        await seen.tenant.writing.create("busy", "", {}, "")
        messages = [Message(role=2, text=f"message {i}") for i in range(10_000)]  # type: ignore[arg-type]
        request = CheckRequestRequest(
            session_id="long",
            messages=messages,
            options=CheckOptions(strict_system=True),
        )
        turns = 0
        checking = asyncio.create_task(seen.tenant.checking.check(request))
        started = time.perf_counter()
        while not checking.done():
            await asyncio.sleep(0)
            turns += 1
            assert time.perf_counter() - started < 60
        judgement = checking.result()
    assert judgement.checked
    assert judgement.violation is None
    # Were the check one piece of work, the loop would have had a handful of turns.
    assert turns > 50


async def test_a_listing_of_the_end_looks_for_no_place_in_the_log(url: str) -> None:
    async with observed(url) as seen:
        await grown(seen.tenant, "long", 5_000)
        await seen.tenant.reading.fold("long")
        await seen.tenant.lanes.pool.close()
        seen.forget()
        page = await seen.tenant.reading.events("long", 4_990, 100)
    assert [stored.envelope.seq for stored in page.events] == list(range(4_990, 5_000))
    assert seen.calls["select_events"] <= 3
