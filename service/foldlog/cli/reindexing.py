"""`foldlog reindex`."""

from __future__ import annotations

from typing import Annotated

import typer

from foldlog.cli.serving import DatabaseUrl, database_trouble, settings_from

KeyFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The master keys. Unset: the configured ones.", show_default=False
    ),
]


def reindex(database_url: DatabaseUrl = None, master_key_file: KeyFile = None) -> None:
    """Make the session index, and what tenants use, anew from the log.

    For when verify finds a fault in the index. On PostgreSQL at any time: listings show the old
    index until it is done, and lag behind meanwhile. On SQLite while the service is stopped.
    """
    from eventsourcing.persistence import PersistenceError

    from foldlog.application.reindexing import reindex as made_anew
    from foldlog.cli.progress import progress
    from foldlog.encryption.opening import with_encryption
    from foldlog.persistence.store import open_store

    settings = settings_from({"database_url": database_url, "master_key_file": master_key_file})
    try:
        store = open_store(settings.database_url, object_directory=settings.object_directory)
        try:
            with progress("reading the log", None) as advance:
                count = made_anew(with_encryption(store, settings), advance)
        finally:
            store.close()
    except (PersistenceError, ValueError, ImportError, OSError) as error:
        raise database_trouble(error) from None
    typer.echo(f"made the index of {count:,} rows")
