"""What a tenant asks of the store about another's session is what it asks about none."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from foldlog.core.errors import FoldlogError
from foldlog.server.handlers import Malformed
from foldlog.server.permissions import NEEDED
from foldlog.server.run import rpcs_of

from tests.contract.calls import fresh_id
from tests.contract.naming_sessions import METHODS, naming
from tests.integration.observed import grown, observed
from tests.postgres import database

pytestmark = pytest.mark.asyncio


async def asked(rpcs: Any, rpc: str, session_id: str) -> str:
    """Make a call about a session, as the wire would, and return how it ended."""
    one = rpcs[rpc]
    elements = [one.request.FromString(e.SerializeToString()) for e in naming(rpc, session_id)]
    assert not any(isinstance(each, Malformed) for each in elements)

    async def stream() -> Any:
        for each in elements:
            yield each

    answer = one.method(stream() if one.takes_stream else elements[0])
    try:
        if one.gives_stream:
            async for _ in answer:
                pass
        else:
            await answer
    except FoldlogError as error:
        return error.reason
    return "ok"


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
async def test_another_tenants_session_costs_the_same_queries_as_none(
    backend: str, tmp_path: Path
) -> None:
    if backend == "sqlite":
        await compare(f"sqlite:///{tmp_path / 'foldlog.db'}")
        return
    with database() as url:
        await compare(url)


async def compare(url: str) -> None:
    listing = {"ListSessions", "ListUnresolvedCalls"}  # they wait for the feed, which is not here
    async with observed(url) as seen:
        await grown(seen.tenant, "theirs", 5)
        rpcs = rpcs_of(seen.app.tenant("other"), asyncio.Event())
        assert rpcs.keys() == NEEDED.keys()
        for rpc in METHODS:
            if not naming(rpc, "theirs") or rpc in listing:
                continue
            costs = []
            for session_id in ("theirs", fresh_id()):
                seen.forget()
                reason = await asked(rpcs, rpc, session_id)
                costs.append((reason, dict(seen.calls), sum(seen.rows.values())))
            assert costs[0] == costs[1], rpc
            assert sum(costs[0][1].values()), rpc
