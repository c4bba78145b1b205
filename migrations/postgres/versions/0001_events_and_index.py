"""Events, checkpoints, the feed's offset, tracking and the session index.

The tables that grow with the log can be partitioned by hash of their session, which asks of the
schema what a distributed PostgreSQL asks: every unique constraint contains the session's id, and
storage parameters stand on the partitions.
"""

from alembic import context, op
from foldlog.persistence.scripts import migrations, statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the schema, plain or partitioned."""
    partitions = context.config.attributes["partitions"]
    for name in ("events", "partitions" if partitions else "storage", "index"):
        for statement in statements(migrations("postgres") / "sql" / f"0001_{name}.sql"):
            _execute(statement, partitions)


def _execute(statement: str, partitions: int) -> None:
    parent = "" if not partitions else " PARTITION BY HASH (originator_id)"
    statement = statement.replace(" /* PARTITION BY */", parent)
    each = range(partitions) if "{partition}" in statement else [0]
    for partition in each:
        op.execute(statement.format(partition=partition, partitions=partitions))
