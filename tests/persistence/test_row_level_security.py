"""Row-level security: what the service's own user finds in the tables, whatever it asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from foldlog.persistence.errors import SchemaError
from foldlog.persistence.index import IndexQuery
from foldlog.persistence.migrate import ServiceUser, migrate
from foldlog.persistence.postgres.roles import COMMITTER, SYSTEM, TENANT
from foldlog.persistence.postgres.scope import TAKE
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store, open_store

from tests.postgres import SERVICE_USER, database, empty_database, server, service_url

Connection = psycopg.Connection[tuple[Any, ...]]

# Tables without anything of any tenant.
NOBODYS = {"foldlog_version", "foldlog_feed", "foldlog_tracking"}
TABLES = """
    SELECT relname, relrowsecurity, relpartbound IS NOT NULL FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
"""
POLICIES = "SELECT tablename, roles::text[] FROM pg_policies WHERE schemaname = 'public'"
FILL = """
    INSERT INTO foldlog_events VALUES ('{t}', '{id}', 1, 'topic', 'secret', 'key', {place});
    INSERT INTO foldlog_checkpoints VALUES ('{t}', '{id}', 1, 'topic', 'secret');
    INSERT INTO foldlog_sessions
        VALUES ('{t}', '{id}', 'a session', NULL, NULL, '{{}}', '', 1, 1, 0, 1, 0);
    INSERT INTO foldlog_session_terms VALUES ('{t}', '{id}', 1, 'term', 1, 0);
    INSERT INTO foldlog_lineage VALUES ('{id}', '{id}', 1);
    INSERT INTO foldlog_call_ledger
        VALUES ('{t}', '{id}', 1, 1, 'call', NULL, 'name', 'idem', 1, 0, true);
    INSERT INTO foldlog_objects VALUES ('{t}', '{t}', 1, 1, 1, NULL, '', 'secret');
    INSERT INTO foldlog_object_references VALUES ('{t}', '{t}', '{id}', 1, 1);
    INSERT INTO foldlog_keys VALUES ('{t}', '{t}', 'admin', '{{}}', '', 'secret', 1);
    INSERT INTO foldlog_quotas VALUES ('{t}');
    INSERT INTO foldlog_usage VALUES ('{t}', 1, 1);
    INSERT INTO foldlog_erasures VALUES ('{t}', '{id}');
    INSERT INTO foldlog_session_keys VALUES ('{t}', '{id}', 'key', 'secret');
"""
OURS, THEIRS = UUID(int=1), UUID(int=2)


@pytest.fixture(params=[0, 4], ids=["plain", "partitioned"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with a row of two tenants in each table, for the service's user."""
    with database(request.param) as found:
        with psycopg.connect(found) as owner:
            for place, (tenant, key) in enumerate([("ours", OURS), ("theirs", THEIRS)]):
                owner.execute(FILL.format(t=tenant, id=key, place=place))
        yield service_url(found)


@contextmanager
def acting(url: str, role: str = "", tenant: str | None = None) -> Iterator[Connection]:
    """Lend a transaction of the service's user, in a role and with a tenant or without."""
    with psycopg.connect(url) as connection:
        if role:
            connection.execute("SELECT set_config('role', %s, true)", [role])
        if tenant is not None:
            connection.execute("SELECT set_config('foldlog.tenant', %s, true)", [tenant])
        yield connection


def tables_of(connection: Connection) -> dict[str, bool]:
    """Return every table but partitions, and whether it has row-level security."""
    found = connection.execute(TABLES).fetchall()
    return {name: is_secured for name, is_secured, is_partition in found if not is_partition}


def count(connection: Connection, table: str) -> int:
    """Return how many rows are seen."""
    row = connection.execute(f"SELECT count(*) FROM (SELECT * FROM {table}) AS t").fetchone()
    assert row is not None
    return int(row[0])


def secured(connection: Connection) -> list[str]:
    """Return the tables that hold something of tenants."""
    return sorted(tables_of(connection).keys() - NOBODYS)


def told(connection: Connection) -> list[str]:
    """Return the tables of which a tenant's calls see something."""
    return [table for table in secured(connection) if table != "foldlog_keys"]


def test_every_table_with_something_of_tenants_is_secured(url: str) -> None:
    with psycopg.connect(url) as connection:
        policies = connection.execute(POLICIES).fetchall()
        for table, is_secured in tables_of(connection).items():
            assert is_secured == (table not in NOBODYS), f"{table} needs policies, as in 0005"
            for role in (TENANT, SYSTEM):
                has_policy = any(t == table and role in roles for t, roles in policies)
                assert has_policy == is_secured, (table, role)


def test_a_tenant_finds_its_own_rows_and_nobody_elses(url: str) -> None:
    with acting(url, TENANT, "ours") as connection:
        found = {table: count(connection, table) for table in told(connection)}
        assert found == dict.fromkeys(told(connection), 1)
        assert connection.execute("SELECT tenant FROM foldlog_events").fetchall() == [("ours",)]


@pytest.mark.parametrize("tenant", [None, "", "nobody", "our", "ours "])
def test_without_the_right_tenant_nothing_is_found(url: str, tenant: str | None) -> None:
    with acting(url, TENANT, tenant) as connection:
        assert not any(count(connection, table) for table in told(connection))


def test_a_tenants_calls_read_no_keys(url: str) -> None:
    with (
        acting(url, TENANT, "ours") as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        count(connection, "foldlog_keys")


def test_a_tenant_that_is_set_for_one_transaction_is_gone_in_the_next(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.pipeline():
            connection.execute(TAKE, [TENANT, "ours"])
            assert connection.execute("SELECT count(*) FROM foldlog_events").fetchall() == [(1,)]
        row = connection.execute(
            "SELECT current_user::text, current_setting('foldlog.tenant', true)"
        ).fetchone()
        assert row == (SERVICE_USER, "")


def test_who_takes_no_role_reads_no_state_and_no_other_table(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        known = connection.execute("SELECT originator_id FROM foldlog_events").fetchall()
        assert len(known) == 2  # what tells a conflict
        for table in secured(connection):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                count(connection, table)


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE foldlog_events SET tenant = 'ours' WHERE originator_id = '{THEIRS}'",
        f"UPDATE foldlog_events SET originator_version = 2 WHERE originator_id = '{OURS}'",
        f"DELETE FROM foldlog_events WHERE originator_id = '{OURS}'",
        "INSERT INTO foldlog_sessions SELECT * FROM foldlog_sessions",
        "TRUNCATE foldlog_checkpoints",
        "ALTER TABLE foldlog_events DISABLE ROW LEVEL SECURITY",
        "CREATE TABLE mine ()",
    ],
)
def test_a_tenants_calls_cannot_change_what_they_need_not(url: str, statement: str) -> None:
    with acting(url, TENANT, "ours") as connection, pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)
    assert isinstance(refused.value, psycopg.errors.InsufficientPrivilege)


def test_a_tenant_changes_no_row_of_another(url: str) -> None:
    change = "UPDATE foldlog_events SET state = 'mine' WHERE originator_id = %s"
    with acting(url, TENANT, "ours") as connection:
        assert connection.execute(change, [THEIRS]).rowcount == 0
        assert connection.execute(change, [OURS]).rowcount == 1
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO foldlog_objects VALUES ('theirs', 'x', 1, 1, 1, NULL, '', '')"
            )


def test_the_system_sees_every_tenant_and_changes_no_event(url: str) -> None:
    with acting(url, SYSTEM) as connection:
        assert all(count(connection, table) == 2 for table in secured(connection))
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE foldlog_events SET state = ''")


def test_members_do_not_inherit_what_roles_may_do(url: str) -> None:
    with psycopg.connect(url) as connection:
        for role, inherits in ((COMMITTER, True), (TENANT, False), (SYSTEM, False)):
            row = connection.execute("SELECT pg_has_role(%s, 'USAGE')", [role]).fetchone()
            assert row == (inherits,), role


# The store, as the service opens it.


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The store as the service's user opens it."""
    opened = open_store(url)
    yield opened
    opened.close()


def test_a_forgotten_filter_leaks_nothing(store: Store) -> None:
    ours = store.for_tenant("ours")
    assert ours.recorder.select_events(THEIRS) == []
    assert ours.recorder.select_versions(THEIRS, [1]) == []
    assert ours.recorder.last_version(THEIRS) is None
    assert ours.recorder.find_request(THEIRS, b"key") is None
    assert ours.checkpoints.select_events(THEIRS) == []
    assert ours.index.find_session(THEIRS) is None
    assert ours.index.forks_reading(THEIRS) == []
    assert ours.objects.open("theirs", b"theirs") is None
    assert not ours.index.list_sessions(IndexQuery(tenant="theirs")).rows
    assert len(ours.index.list_sessions(IndexQuery(tenant="ours")).rows) == 1


def test_events_of_every_tenant_are_committed_in_one_insert(store: Store) -> None:
    rows = [
        SessionStoredEvent(UUID(int=number), 1, "topic", b"state", tenant=tenant)
        for number, tenant in ((3, "ours"), (4, "theirs"))
    ]
    store.recorder.insert_events(rows)
    assert store.for_tenant("theirs").recorder.last_version(UUID(int=4)) == 1
    assert store.for_tenant("theirs").recorder.last_version(UUID(int=3)) is None


# Who may serve.


def test_an_owner_serves_unless_row_level_security_is_required() -> None:
    with database() as url:
        opened = open_store(url)
        assert not opened.keeps_tenants_apart
        opened.close()
        with pytest.raises(SchemaError, match="--service-user"):
            open_store(url, requires_row_security=True)
        open_store(service_url(url), requires_row_security=True).close()


def test_a_user_who_was_not_let_in_is_told_how() -> None:
    running = server()
    running.execute("CREATE ROLE a_stranger LOGIN")
    try:
        with database() as url, pytest.raises(SchemaError, match="--service-user"):
            open_store(url.replace("postgres@", "a_stranger@", 1))
    finally:
        running.execute("DROP ROLE a_stranger")


def test_a_user_that_is_missing_is_made_and_let_in() -> None:
    running = server()
    try:
        with empty_database() as url:
            for _ in range(2):
                migrate(url, service_user=ServiceUser('an_agent\'s "store"', "a secret"))
            user = "an_agent%27s%20%22store%22:a%20secret@"
            opened = open_store(url.replace("postgres@", user, 1), requires_row_security=True)
            opened.close()
    finally:
        running.execute('DROP ROLE "an_agent\'s ""store"""')


def test_who_may_not_make_the_roles_says_what_is_to_be_run() -> None:
    # On this server the roles are there already, so one that is not is asked for.
    from foldlog.persistence.postgres import roles

    running = server()
    running.execute("CREATE ROLE an_owner LOGIN")
    try:
        with pytest.MonkeyPatch.context() as patch, empty_database() as url:
            patch.setattr(roles, "TENANT", "foldlog_missing")
            patch.setattr(roles, "ROLES", "CREATE ROLE foldlog_missing NOLOGIN;")
            name = url.rpartition("/")[2]
            running.execute(f"ALTER DATABASE {name} OWNER TO an_owner")
            with pytest.raises(SchemaError, match="CREATE ROLE foldlog_missing NOLOGIN"):
                migrate(url.replace("postgres@", "an_owner@", 1))
    finally:
        running.execute("DROP ROLE an_owner")
