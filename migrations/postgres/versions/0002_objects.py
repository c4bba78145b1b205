"""Attachments, and which rows name them.

Beside the tables that grow with the log: an attachment belongs to a tenant, not to a session.
"""

from alembic import op
from foldlog.persistence.scripts import migrations, statements

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create both tables."""
    for statement in statements(migrations("postgres") / "sql" / "0002_objects.sql"):
        op.execute(statement)
