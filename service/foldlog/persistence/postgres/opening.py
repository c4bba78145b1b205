"""A store on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from foldlog.persistence.data_keys import DataKeyTable
from foldlog.persistence.erasures import ErasureTable
from foldlog.persistence.keys import KeyTable
from foldlog.persistence.object_files import ObjectFiles
from foldlog.persistence.objects import ObjectStore
from foldlog.persistence.postgres.checkpoints import PostgresCheckpointRecorder
from foldlog.persistence.postgres.connections import PostgresConnections
from foldlog.persistence.postgres.index import PostgresSessionIndex
from foldlog.persistence.postgres.objects import PostgresObjectTable
from foldlog.persistence.postgres.recorder import PostgresSessionRecorder
from foldlog.persistence.postgres.roles import SYSTEM, TENANT, is_bound
from foldlog.persistence.postgres.scope import Scope, ScopedConnections
from foldlog.persistence.postgres.statements import PostgresStatements
from foldlog.persistence.quotas import QuotaTable
from foldlog.persistence.store import Store


def store_on(
    whole: PostgresConnections,
    files: ObjectFiles | None,
    inline_bytes: int,
    close: Callable[[], None],
) -> Store:
    """Return the store: the system's, where row-level security binds us, else one for all."""
    made = partial(_store, files=files, inline_bytes=inline_bytes, close=close)

    def scoped(role: str, tenant: str = "") -> Store:
        return made(ScopedConnections(whole, Scope(role, tenant)))

    with whole.connection() as connection:
        is_restricted = is_bound(connection)
    if is_restricted:
        return replace(scoped(SYSTEM), scoped=partial(scoped, TENANT))
    return made(whole)


def _store(
    datastore: PostgresConnections,
    files: ObjectFiles | None,
    inline_bytes: int,
    close: Callable[[], None],
) -> Store:
    statements = PostgresStatements(datastore)
    return Store(
        "postgres",
        PostgresSessionRecorder(datastore),
        PostgresCheckpointRecorder(datastore),
        PostgresSessionIndex(datastore),
        ObjectStore(PostgresObjectTable(datastore), files, inline_bytes),
        KeyTable(statements),
        DataKeyTable(statements, lambda each: each),
        ErasureTable(statements, lambda each: each),
        QuotaTable(statements),
        close,
    )
