"""The tool-effect ledger.

Kept from the feed with the session index: it begins with what is appended from here on.
"""

from alembic import op
from foldlog.persistence.scripts import migrations, statements

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    for statement in statements(migrations("postgres") / "sql" / "0003_call_ledger.sql"):
        op.execute(statement)
