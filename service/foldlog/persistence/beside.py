"""Opening a database that a service may be using at the same time."""

from __future__ import annotations

from foldlog.persistence.migrate import migrate, pending
from foldlog.persistence.store import SQLITE, Store, open_store
from foldlog.settings import Settings


def open_beside(settings: Settings) -> Store:
    """Open a store for a few small writes, and make a SQLite file if there is none.

    A SQLite file is not taken for this process: its own locks keep the two apart. Only to bring it
    up to date it has to be free. Raises what `open_store` raises.
    """
    url = settings.database_url
    if url == f"{SQLITE}:memory:":
        raise ValueError("a database in memory is its process's own")
    if url.startswith(SQLITE) and pending(url):
        migrate(url)
    return open_store(
        url,
        pool_size=1,
        reader_threads=1,
        object_directory=settings.object_directory,
        inline_bytes=settings.object_inline_bytes,
        is_shared=True,
    )
