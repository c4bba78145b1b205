"""Erasures that are under way."""

from alembic import op
from foldlog.persistence.postgres.roles import tenant_policies
from foldlog.persistence.scripts import migrations, statements

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table."""
    for statement in statements(migrations("postgres") / "sql" / "0007_erasures.sql"):
        op.execute(statement)
    for statement in tenant_policies("foldlog_erasures"):
        op.execute(statement)
