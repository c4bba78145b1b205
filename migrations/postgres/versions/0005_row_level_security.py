"""Row-level security: a query that forgets the tenant finds nothing.

It binds a service that connects as a member of foldlog_committer; owners and superusers stand above
it. The roles belong to the whole server, so other databases may have made them already.
"""

from alembic import op
from foldlog.persistence.postgres.roles import make_roles, tenant_policies
from foldlog.persistence.scripts import migrations, statements

revision = "0005"
down_revision = "0004"

TENANT_TABLES = (
    "foldlog_events",
    "foldlog_checkpoints",
    "foldlog_sessions",
    "foldlog_session_terms",
    "foldlog_call_ledger",
    "foldlog_objects",
    "foldlog_object_references",
    "foldlog_keys",
    "foldlog_quotas",
    "foldlog_usage",
)


def upgrade() -> None:
    """Make the roles and the policies."""
    make_roles(op.get_bind().connection.driver_connection)
    for table in TENANT_TABLES:
        for statement in tenant_policies(table):
            op.execute(statement)
    for statement in statements(migrations("postgres") / "sql" / "0005_row_level_security.sql"):
        op.execute(statement)
