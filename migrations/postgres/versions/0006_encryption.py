"""Wrapped data keys of sessions and attachments.

What was stored before has none and stays as it is.
"""

from alembic import op
from foldlog.persistence.postgres.roles import tenant_policies
from foldlog.persistence.scripts import migrations, statements

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table and the columns."""
    for statement in statements(migrations("postgres") / "sql" / "0006_encryption.sql"):
        op.execute(statement)
    for statement in tenant_policies("foldlog_session_keys"):
        op.execute(statement)
