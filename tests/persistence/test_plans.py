"""How queries are answered when there is much: from an index, in its order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
import pytest
from foldlog.persistence import queries
from foldlog.persistence.index import IndexQuery, Instant
from foldlog.persistence.listing import listing
from foldlog.persistence.postgres.connections import PLANS
from foldlog.persistence.postgres.index import FIND, FORKS
from foldlog.persistence.postgres.recorder import VERSIONS
from foldlog.persistence.postgres.roles import SYSTEM, TENANT
from foldlog.persistence.postgres.scope import TAKE
from foldlog.persistence.queries import Query
from foldlog.persistence.store import open_store

from tests.persistence.stores import row
from tests.postgres import PARTITIONS, database

SESSION = UUID(int=17)
EVENT_READS = {
    "all of a session": queries.events("foldlog_events", SESSION, None, None, False, None),
    "a page": queries.events("foldlog_events", SESSION, 500, None, False, 1_000),
    "a range": queries.events("foldlog_events", SESSION, 10, 20, False, None),
    "the newest": queries.events("foldlog_events", SESSION, None, None, True, 1),
    "a checkpoint": queries.events("foldlog_checkpoints", SESSION, None, 900, True, 1),
    "some versions": queries.versions(SESSION, [1, 5, 900]),
    "the last version": queries.last_version(SESSION),
    "a request": queries.request(SESSION, b"key"),
}
FEED_READS = {
    "notifications": queries.notifications(5_000, 1 << 62, (), False, 500),
    "notifications of topics": queries.notifications(5_000, 1 << 62, ("t", "u"), False, 500),
    "places": queries.places(5_000, 1 << 62, 5_000),
    "placed": queries.placed([5_001, 5_900]),
    "changes": queries.changes(5_000, 1 << 62, 1_000),
    "heads": queries.heads("default", 5_000, 1 << 62, 100),
    "the last notification": queries.last_notification(1 << 62),
}
LISTINGS = {
    "all": IndexQuery(),
    "created": IndexQuery(created_from=Instant(5), created_before=Instant(900)),
    "a label": IndexQuery(labels={"a": "1"}),
    "labels": IndexQuery(labels={"a": "1", "b": "2"}),
    "a parent": IndexQuery(parent_session_id="p"),
    "a custom key": IndexQuery(custom_key="k"),
    "a custom kind": IndexQuery(custom_kind="k"),
    "both": IndexQuery(custom_kind="k", custom_key="x", created_from=Instant(5)),
}
UPDATED = IndexQuery(updated_from=Instant(2_000))

FILL = (
    """INSERT INTO foldlog_events SELECT 'default', lpad(to_hex(s), 32, '0')::uuid, v, 't',
       repeat('x', 700)::bytea, NULL, (v * 1000 + s)::bigint << 20
       FROM generate_series(1, 500) s, generate_series(1, 40) v""",
    """INSERT INTO foldlog_checkpoints SELECT 'default', lpad(to_hex(s), 32, '0')::uuid, v, 't', 'x'
       FROM generate_series(1, 500) s, generate_series(1, 20) v""",
    """INSERT INTO foldlog_sessions SELECT 'default', lpad(to_hex(s), 32, '0')::uuid, 's', NULL,
       NULL, '{}', '', 1, s, 0, s, 0, false FROM generate_series(1, 5000) s""",
    """INSERT INTO foldlog_session_terms SELECT 'default', lpad(to_hex(s), 32, '0')::uuid, source,
       sha256(term::text::bytea), s, 0
       FROM generate_series(1, 5000) s, generate_series(1, 5) source, generate_series(1, 3) term""",
    """INSERT INTO foldlog_lineage SELECT lpad(to_hex(s), 32, '0')::uuid,
       lpad(to_hex(s / 2), 32, '0')::uuid, 3 FROM generate_series(1, 5000) s""",
    "ANALYZE",
)


@pytest.fixture(scope="module", params=[0, PARTITIONS], ids=["plain", "partitioned"])
def tables(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection, set as the store sets its own, to tables with much in them."""
    with database(request.param) as url, psycopg.connect(url, autocommit=True) as connection:
        for statement in FILL:
            connection.execute(statement)
        connection.execute(PLANS)
        yield connection


@pytest.fixture(params=["owner", "tenant", "rare tenant"])
def filled(
    request: pytest.FixtureRequest, tables: psycopg.Connection[tuple[Any, ...]]
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """The same as the owner, and under row-level security as a tenant with many rows or none."""
    with tables.transaction(force_rollback=True):
        if request.param != "owner":
            take(tables, TENANT, "default" if request.param == "tenant" else "rare")
        yield tables


def take(connection: psycopg.Connection[tuple[Any, ...]], role: str, tenant: str) -> None:
    connection.execute("RESET ROLE")
    connection.execute(TAKE, [role, tenant])


def plan(connection: psycopg.Connection[tuple[Any, ...]], query: Query) -> str:
    """Return how PostgreSQL would answer."""
    sql, parameters = query
    return "\n".join(line for (line,) in connection.execute(f"EXPLAIN {sql}", parameters))


def test_no_read_of_events_scans_or_sorts(filled: psycopg.Connection[tuple[Any, ...]]) -> None:
    for name, query in EVENT_READS.items():
        found = plan(filled, query)
        assert "Seq Scan" not in found, (name, found)
        assert name == "some versions" or "Sort" not in found.replace("Sort Key", ""), (name, found)


def test_no_read_of_the_feed_scans_or_sorts(filled: psycopg.Connection[tuple[Any, ...]]) -> None:
    take(filled, SYSTEM, "")
    for name, query in FEED_READS.items():
        found = plan(filled, query)
        assert "Seq Scan" not in found, (name, found)
        assert "Sort" not in found.replace("Sort Key", ""), (name, found)


def test_an_array_of_versions_scans_nothing(filled: psycopg.Connection[tuple[Any, ...]]) -> None:
    assert "Seq Scan" not in plan(filled, (VERSIONS, [[1, 5, 900], SESSION]))


def test_no_listing_scans_or_sorts(filled: psycopg.Connection[tuple[Any, ...]]) -> None:
    for name, query in LISTINGS.items():
        found = plan(filled, listing(query, lambda key: key))
        assert "Seq Scan" not in found, (name, found)
        assert "Sort" not in found, (name, found)
        assert "foldlog_events" not in found, (name, found)


def test_sessions_updated_since_a_time_are_read_from_an_index(
    filled: psycopg.Connection[tuple[Any, ...]],
) -> None:
    found = plan(filled, listing(UPDATED, lambda key: key))
    assert "Seq Scan" not in found, found


@pytest.mark.parametrize("sql", [FIND, FORKS], ids=["find", "forks"])
def test_look_ups_in_the_index_scan_nothing(
    filled: psycopg.Connection[tuple[Any, ...]], sql: str
) -> None:
    assert "Seq Scan" not in plan(filled, (sql, [SESSION]))


def test_pages_are_read_in_order_before_statistics_exist(plain_url: str) -> None:
    with psycopg.connect(plain_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE foldlog_events SET (autovacuum_enabled = false)")
        connection.execute(FILL[0])
        connection.execute(PLANS)
        for name in ("a page", "changes", "notifications"):
            found = plan(connection, (EVENT_READS | FEED_READS)[name])
            assert "Sort" not in found, (name, found)


def test_the_insert_is_planned_once_on_a_connection_of_its_own(plain_url: str) -> None:
    store = open_store(plain_url, pool_size=1)
    for version in (1, 2):
        store.recorder.insert_events([row(SESSION, version)])
    with cast("Any", store.recorder).datastore.connection() as connection:
        (planned,) = connection.execute(
            "SELECT generic_plans + custom_plans FROM pg_prepared_statements"
        ).fetchall()
    store.close()
    assert planned == (2,)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a SQLite file of ours. Its planner knows no sizes: nothing is analyzed."""
    path = tmp_path / "foldlog.db"
    open_store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def sqlite_plan(connection: sqlite3.Connection, query: Query) -> str:
    """Return how SQLite would answer."""
    sql, parameters = query
    explain = "EXPLAIN QUERY PLAN " + sql.replace("%s", "?")
    values = [each.bytes if isinstance(each, UUID) else each for each in parameters]
    return "\n".join(row[3] for row in connection.execute(explain, values))


def test_no_read_of_events_scans_or_sorts_in_a_file(file: sqlite3.Connection) -> None:
    for name, query in EVENT_READS.items():
        found = sqlite_plan(file, query)
        assert found.startswith("SEARCH"), (name, found)
        assert name != "some versions" or "originator_version=?" in found, found
        assert "TEMP B-TREE" not in found, (name, found)


def test_no_listing_scans_or_sorts_in_a_file(file: sqlite3.Connection) -> None:
    for name, query in LISTINGS.items():
        found = sqlite_plan(file, listing(query, lambda key: key.bytes))
        assert "SCAN" not in found, (name, found)
        assert "TEMP B-TREE" not in found, (name, found)


def test_look_ups_in_the_index_scan_nothing_in_a_file(file: sqlite3.Connection) -> None:
    looked_up: list[Query] = [(FIND, [SESSION]), (FORKS, [SESSION])]
    for query in (*looked_up, listing(UPDATED, lambda key: key.bytes)):
        assert "SCAN" not in sqlite_plan(file, query)


def test_a_page_or_look_up_costs_the_same_however_long_the_session(plain_url: str) -> None:
    store, session = open_store(plain_url), uuid4()
    with psycopg.connect(plain_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO foldlog_events SELECT 'default', %s, v, 't', 'state', NULL, v << 20"
            " FROM generate_series(1, 50000) v",
            [session],
        )
        connection.execute(PLANS)
        page = queries.events("foldlog_events", session, 100, None, False, 100)
        assert _blocks(connection, page) < 50
        assert _blocks(connection, (VERSIONS, [[*range(1, 200, 2)], session])) < 500
    store.close()


def _blocks(connection: psycopg.Connection[tuple[Any, ...]], query: Query) -> int:
    sql, parameters = query
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"
    row = connection.execute(explain, parameters).fetchone()
    assert row is not None
    top = row[0][0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
