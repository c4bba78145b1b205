"""What is cached of sessions that nobody uses is forgotten, and nobody notices."""

from __future__ import annotations

import asyncio
from pathlib import Path

from foldlog.application.identity import DEFAULT_TENANT, aggregate_id
from foldlog.application.tenant import Tenant

from tests.integration.observed import append, grown, observed, said


def is_known(tenant: Tenant, name: str) -> bool:
    return tenant.lanes.known(aggregate_id(DEFAULT_TENANT, name)) is not None


async def test_sessions_that_are_not_used_are_forgotten(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}") as seen:
        tenant = seen.tenant
        for name in ("used", "unused", "watched"):
            await grown(tenant, name, 3)
        watch = tenant.watching.watch("watched", 0)
        await anext(watch)
        pool = tenant.lanes.pool
        pool.forget_unused()
        await append(tenant, "used", [said(2, "more")])
        assert pool.forget_unused() == 1
        known = [is_known(tenant, name) for name in ("used", "unused", "watched")]
        assert known == [True, False, True]
        await append(tenant, "unused", [said(2, "after")])
        folded = await tenant.reading.fold("unused")
        assert len(folded.fold.surface) == 4
        await watch.aclose()  # type: ignore[attr-defined]


async def test_it_happens_by_itself(tmp_path: Path) -> None:
    async with observed(f"sqlite:///{tmp_path / 'foldlog.db'}", cache_idle_s=0.1) as seen:
        await seen.app.start()
        await grown(seen.tenant, "session", 3)
        async with asyncio.timeout(30):
            while is_known(seen.tenant, "session"):
                await asyncio.sleep(0.01)
        assert (await seen.tenant.reading.fold("session")).next_seq == 3
