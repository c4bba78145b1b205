"""The schema in PostgreSQL, and bringing it up to date."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from foldlog.persistence.errors import SchemaError
from foldlog.persistence.migrate import migrate, pending
from foldlog.persistence.store import open_store

from tests.persistence.stores import row
from tests.postgres import PARTITIONS, empty_database

# Small, changed by everybody, and copied to every node of a distributed database.
REFERENCE_TABLES = {"foldlog_tracking", "foldlog_version", "foldlog_feed", "foldlog_keys"}
REFERENCE_TABLES |= {"foldlog_quotas", "foldlog_usage"}
# Attachments belong to a tenant: a distributed database spreads them by their digest.
OBJECT_TABLES = {"foldlog_objects"}
UNIQUE = """
    SELECT t.relname, i.relname, array_agg(a.attname::text)
    FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY(x.indkey)
    WHERE x.indisunique AND t.relname LIKE 'foldlog%' GROUP BY 1, 2
"""
NAMES = """
    SELECT conname FROM pg_constraint
    WHERE conrelid::regclass::text LIKE 'foldlog%' AND contype <> 'n'
    UNION SELECT indexname FROM pg_indexes WHERE tablename LIKE 'foldlog%'
"""
OBJECTS = """
    SELECT 'trigger' FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'function' FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT 'type' FROM pg_type t WHERE typnamespace = 'public'::regnamespace
        AND typtype = 'c' AND NOT EXISTS (
            SELECT 1 FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind IN ('r', 'p'))
    UNION ALL SELECT 'sequence' FROM pg_class WHERE relkind = 'S'
        AND relnamespace = 'public'::regnamespace
"""


def test_every_unique_index_contains_the_session(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(UNIQUE).fetchall()
    assert len(found) >= 6
    for table, index, columns in found:
        if table in OBJECT_TABLES:
            assert {"tenant", "sha256"} == set(columns), index
        elif table not in REFERENCE_TABLES:
            assert {"originator_id", "aggregate_id"} & set(columns), index


def test_constraints_and_indexes_are_named_by_hand(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        names = {name for (name,) in connection.execute(NAMES)}
    generated = {name for name in names if name.endswith(("_pkey", "_key", "_idx", "_fkey"))}
    assert {"foldlog_events_version", "foldlog_events_request"} <= names
    assert generated == set()


def test_there_are_no_triggers_functions_composite_types_or_sequences(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute(OBJECTS).fetchall() == []


def test_a_partitioned_database_has_the_partitions_asked_for() -> None:
    with empty_database() as url:
        migrate(url, partitions=3)
        with psycopg.connect(url) as connection:
            counts = connection.execute(
                "SELECT inhparent::regclass::text, count(*) FROM pg_inherits"
                " JOIN pg_class c ON c.oid = inhrelid WHERE c.relkind = 'r' GROUP BY 1 ORDER BY 1"
            ).fetchall()
    assert counts == [("foldlog_checkpoints", 3), ("foldlog_events", 3)]


def test_an_empty_database_is_refused_with_the_command_to_run() -> None:
    with empty_database() as url:
        with pytest.raises(SchemaError, match="foldlog migrate"):
            open_store(url)
        steps = [
            "0001_events_and_index",
            "0002_objects",
            "0003_call_ledger",
            "0004_keys_and_quotas",
            "0005_row_level_security",
            "0006_encryption",
            "0007_erasures",
        ]
        assert pending(url) == steps
        assert migrate(url) == steps
        open_store(url).close()


def test_a_migrated_database_is_migrated_again_to_no_effect(postgres_url: str) -> None:
    assert migrate(postgres_url) == pending(postgres_url) == []
    assert migrate(postgres_url, partitions=PARTITIONS) == []


def test_the_schema_of_a_newer_release_is_accepted(plain_url: str) -> None:
    with psycopg.connect(plain_url) as connection:
        connection.execute("UPDATE foldlog_version SET version_num = '9999'")
    open_store(plain_url).close()


def test_a_migration_that_fails_leaves_nothing() -> None:
    with empty_database() as url:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE foldlog_lineage ()")
        with pytest.raises(Exception, match="foldlog_lineage"):
            migrate(url)
        with psycopg.connect(url) as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE tablename ~ 'foldlog'"
            )
            assert tables.fetchall() == [("foldlog_lineage",)]


def test_rows_of_a_server_with_higher_transaction_ids_keep_their_place(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        (xid,) = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or (0,)
        connection.execute(
            "INSERT INTO foldlog_events VALUES ('default', %s, 1, 't', '', NULL, %s)",
            [uuid4(), (xid + 1_000_000) << 20],
        )
    with pytest.raises(SchemaError, match="foldlog migrate"):
        open_store(postgres_url)
    assert pending(postgres_url) == migrate(postgres_url) == ["feed_offset"]
    assert pending(postgres_url) == []
    store = open_store(postgres_url)
    store.recorder.insert_events([row(uuid4(), 2)])
    assert [version for _, _, version in store.recorder.select_changes(0, 10)] == [1, 2]
    store.close()
