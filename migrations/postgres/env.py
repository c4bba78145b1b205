"""Alembic's entry point: runs on the connection, and in the transaction, of foldlog.persistence."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, version_table=context.config.attributes["version_table"])
context.run_migrations()
