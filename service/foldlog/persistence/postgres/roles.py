"""The roles that row-level security knows, how they are made, and whom it binds."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from foldlog.persistence.errors import SchemaError

COMMITTER = "foldlog_committer"
TENANT = "foldlog_tenant"
SYSTEM = "foldlog_system"

# The committer does not inherit what the others may do, so that its members have to take a role.
ROLES = f"""\
CREATE ROLE {TENANT} NOLOGIN;
CREATE ROLE {SYSTEM} NOLOGIN;
CREATE ROLE {COMMITTER} NOLOGIN NOINHERIT IN ROLE {TENANT}, {SYSTEM};"""

MISSING = """
    SELECT name FROM unnest(%s::text[]) AS name
    WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
"""
# One for all databases of the server, each of which may want to make the roles just now.
LOCK = "SELECT pg_advisory_xact_lock(%s)"
LOCK_KEY = int.from_bytes(b"fl-roles", "big") >> 1

BOUND = "SELECT row_security_active('foldlog_events')"

Connection = psycopg.Connection[tuple[Any, ...]]


def make_roles(connection: Connection) -> None:
    """Make the roles that the server does not have yet. Raises SchemaError if that is not allowed.

    Roles belong to the server, not to a database.
    """
    connection.execute(LOCK, [LOCK_KEY])
    missing = connection.execute(MISSING, [[COMMITTER, TENANT, SYSTEM]]).fetchall()
    if not missing:
        return
    try:
        for statement in ROLES.splitlines():
            if any(f"ROLE {name} " in statement for (name,) in missing):
                connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        raise SchemaError(
            "this user may not make the roles of row-level security. Let a user with CREATEROLE"
            f" run, once for the server:\n{ROLES}\nand migrate again"
        ) from error


def let_serve(connection: Connection, login: str, password: str) -> None:
    """Let the service connect as a user, who is made, with the password, if missing."""
    user = sql.Identifier(login)
    if connection.execute(MISSING, [[login]]).fetchone():
        secret = sql.Literal(password) if password else sql.NULL
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(user, secret))
    connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(COMMITTER), user))


def tenant_policies(table: str) -> list[str]:
    """Return the statements that let a tenant see its own rows of a table, and the system all."""
    own = "tenant = current_setting('foldlog.tenant', true)"
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY {table}_tenant ON {table} TO {TENANT} USING ({own})",
        f"CREATE POLICY {table}_system ON {table} TO {SYSTEM} USING (true)",
    ]


def is_bound(connection: Connection) -> bool:
    """Tell whether row-level security binds whom the connection is logged in as."""
    return connection.execute(BOUND).fetchone() == (True,)
