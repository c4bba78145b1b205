"""Faults of databases that users of other systems met, on PostgreSQL with the fault injected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cases import table
from tests.cases.database_driver import DatabaseRun
from tests.cluster import Server
from tests.faults.databases import Database, fresh_database
from tests.faults.proxy import Proxy
from tests.pgbouncer import pooled
from tests.postgres import another_server
from tests.served import Served

CASES = table.database_cases()
POOLED_CASE = "db-01"
SETTINGS = {"db-05": {"FOLDLOG_POOL_SIZE": "5"}}


@pytest.fixture(scope="module")
def breakable() -> Iterator[Server]:
    """A PostgreSQL server that may be restarted."""
    with another_server() as server:
        yield server


@pytest.fixture
def database(breakable: Server) -> Iterator[Database]:
    """A database of its own."""
    with fresh_database(breakable) as database:
        yield database


@pytest.fixture
def run(
    case: dict[str, Any], database: Database, serve: Callable[..., Served]
) -> Iterator[DatabaseRun]:
    """A run of the case, through a network that loses what it is told to, and a pooler if asked."""
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(database.server.port))
        url = database.url_through(proxy.port)
        if case["id"] == POOLED_CASE:
            url = stack.enter_context(pooled(url, pool_size=2))
        served = serve("postgres", url=url, **SETTINGS.get(case["id"], {}))
        run = DatabaseRun(served, served.restart, lambda _: None, database=database, proxy=proxy)
        yield run
        run.end_streams()
        served.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case_ends_as_it_should(case: dict[str, Any], run: DatabaseRun) -> None:
    run.run(case["ops"])
    expect, ours = case["expect"], case["ours"]["results"]
    for index, told in run.results.items():
        where = f"op {index}: {told}"
        codes = expect.get("errors", {}).get(str(index))
        stated = ours.get(str(index), {})
        assert codes is None or told.get("code") in codes, where
        assert codes or "refused" in stated or "refused" not in told, where
        assert _narrowed(told, stated) == stated, where
    surfaces, next_seqs = run.surfaces(), run.next_seqs()
    for alias, seqs in expect.get("surface_seqs", {}).items():
        assert surfaces[alias] == seqs, alias
    for alias, next_seq in expect.get("next_seq", {}).items():
        assert next_seqs[alias] == next_seq, alias


def _narrowed(told: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _narrowed(told.get(key, {}), value) if isinstance(value, dict) else told.get(key)
        for key, value in stated.items()
    }
