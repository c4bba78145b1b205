"""Doctor's look at a SQLite file. Reads it only, and leaves no file beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eventsourcing.persistence import PersistenceError

from foldlog.cli.doctor.compression import compression
from foldlog.cli.doctor.encryption import encryption
from foldlog.cli.doctor.finding import Finding, fault, index_lag, note, ok, warning
from foldlog.persistence.queries import Query
from foldlog.settings import Settings

# The bytes of the header that name the journal: 2 for WAL.
JOURNAL_BYTES = slice(18, 20)
LITTLE_DISK = 1 << 30
NO_DISK = 64 << 20
NETWORK_FILESYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "glusterfs"})


def sqlite_file(path: Path, settings: Settings | None = None) -> Iterator[Finding]:
    """Look at the database file, where it lies, and the master keys that it needs."""
    settings = settings or Settings()
    folder = path.absolute().parent
    yield from _disk(folder)
    yield from _filesystem(folder)
    if not path.exists():
        yield from _missing(path, folder)
        yield from encryption(settings, _nothing)
        yield from compression(settings, _nothing)
        return
    yield from _permissions(path, folder)
    try:
        yield from _contents(path, settings)
    except (OSError, sqlite3.DatabaseError, PersistenceError) as error:
        yield _unreadable(str(error))


def _missing(path: Path, folder: Path) -> Iterator[Finding]:
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield fault(
            "database",
            f"{path} is not there and {folder} cannot be written to",
            "The service makes the file when it first starts.",
            f"Make the folder and let this user write to it: mkdir -p {folder}",
        )
    else:
        yield note("database", f"{path} is not there yet; the service makes it when it starts")


def _disk(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        return
    free = shutil.disk_usage(folder).free
    what = f"{free / (1 << 30):.1f} GiB free in {folder}"
    if free >= LITTLE_DISK:
        yield ok("disk", what)
        return
    kind = fault if free < NO_DISK else warning
    yield kind(
        "disk", what, "Without space no write can be stored.", "Free some, or move the file."
    )


def _filesystem(folder: Path) -> Iterator[Finding]:
    kind = filesystem_of(folder)
    if kind in NETWORK_FILESYSTEMS:
        yield fault(
            "database",
            f"{folder} is on a network file system ({kind})",
            "Write-ahead logging needs locks that such systems do not keep: data gets lost.",
            "Keep the file on a local disk, or use PostgreSQL.",
        )


def filesystem_of(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """Return the type of the file system a folder is on; empty where it cannot be told."""
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return ""
    holding = [(line[1], line[2]) for line in lines if folder.is_relative_to(line[1])]
    return max(holding, key=lambda mount: len(mount[0]), default=("", ""))[1]


def _permissions(path: Path, folder: Path) -> Iterator[Finding]:
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(folder, os.W_OK):
        yield fault(
            "permissions",
            f"this user cannot write to {path} and its folder",
            "Write-ahead logging makes files beside it.",
            f"Run as the owner, or: chown {os.geteuid()} {folder} {path}",
        )
    mode = path.stat().st_mode
    if mode & stat.S_IWOTH:
        yield fault(
            "permissions",
            f"everybody on this machine can write to {path}",
            "Whoever changes the file breaks its chains.",
            f"chmod o-w {path}",
        )
    elif mode & stat.S_IROTH:
        yield note(
            "permissions",
            f"everybody on this machine can read {path}",
            "It holds every message of every session.",
            f"chmod o-r {path}",
        )


def _nothing(_: Query) -> list[tuple[Any, ...]]:
    return [(None,)]


def _contents(path: Path, settings: Settings) -> Iterator[Finding]:
    from foldlog.persistence.sqlite.file import check_is_ours

    check_is_ours(path)
    if not path.stat().st_size:
        yield note("database", f"{path} is empty; the service fills it when it starts")
        return
    with closing(_opened(path)) as connection:
        damage = _damage(connection)
        if damage:
            yield _damaged(path, damage)
            return
        yield ok("database", f"{path}: SQLite finds it whole")
        yield from _schema(path, connection, settings)
    yield from _journal(path)


def _opened(path: Path) -> sqlite3.Connection:
    """Open for reading. Without a write-ahead log as immutable, or SQLite would make files."""
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() else "immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.absolute()))}?{mode}", uri=True, timeout=5)


def _damage(connection: sqlite3.Connection) -> list[str]:
    try:
        found = connection.execute("PRAGMA integrity_check(5)").fetchall()
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return [str(error)]  # too damaged to be checked to the end
    return [text for (text,) in found if text != "ok"]


def _damaged(path: Path, damage: list[str]) -> Finding:
    return fault(
        "database",
        f"{path} is damaged: {'; '.join(damage)}",
        "Reads that meet the damage fail, and later writes may make it worse.",
        "Stop the service, keep a copy of the file, and restore a backup.",
    )


def _schema(path: Path, connection: sqlite3.Connection, settings: Settings) -> Iterator[Finding]:
    from foldlog.persistence.sqlite.schema import pending

    missing = [step.name for step in pending(connection, str(path))]
    if missing:
        yield note(
            "schema", f"older than this release; its next start applies {', '.join(missing)}"
        )
        return
    yield ok("schema", "the one this release works with")
    yield from _index_lag(connection)

    def rows(query: Query) -> list[tuple[Any, ...]]:
        return connection.execute(query[0].replace("%s", "?"), query[1]).fetchall()

    yield from encryption(settings, rows)
    yield from compression(settings, rows)


def _index_lag(connection: sqlite3.Connection) -> Iterator[Finding]:
    (lag,) = connection.execute(
        """
        SELECT count(*) FROM foldlog_events WHERE notification_id > coalesce(
            (SELECT notification_id FROM foldlog_tracking WHERE application_name = 'sessions'), 0)
        """
    ).fetchone()
    yield index_lag(lag)


def _journal(path: Path) -> Iterator[Finding]:
    with path.open("rb") as file:
        journal = file.read(JOURNAL_BYTES.stop)[JOURNAL_BYTES]
    if journal != b"\x02\x02":
        yield warning(
            "database",
            "the file is not in write-ahead mode",
            "Readers and the writer block each other.",
            "Start the service once; it sets the mode.",
        )
    else:
        yield ok("database", "write-ahead log; the service writes with synchronous = FULL")


def _unreadable(why: str) -> Finding:
    return fault(
        "database",
        f"cannot be used: {why}",
        "The service does not touch a file that it cannot read or that is not its own.",
        "Name another file as --database-url sqlite:///PATH, or restore a backup.",
    )
