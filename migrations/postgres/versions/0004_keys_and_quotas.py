"""API keys, quotas, and what each tenant uses.

The use is counted once here and kept with the session index from then on. A process of the
release before, which knows nothing of it, moves the index on without counting: `foldlog quotas`
counts anew.
"""

from alembic import op
from foldlog.persistence.scripts import migrations, statements

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables."""
    for statement in statements(migrations("postgres") / "sql" / "0004_keys_and_quotas.sql"):
        op.execute(statement)
