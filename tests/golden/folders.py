"""The folders of golden databases: how they are laid out, made and brought back to life."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from foldlog.persistence.postgres.roles import make_roles

from tests.postgres import empty_database
from tests.served import Served

HERE = Path(__file__).parent
DIALECTS = ("sqlite", "postgres")


@dataclass(frozen=True)
class Golden:
    """What one release left in one kind of database, and what it answered."""

    folder: Path

    @property
    def dialect(self) -> str:
        """Which kind."""
        return self.folder.name

    @property
    def name(self) -> str:
        """The release and the kind."""
        return f"{self.folder.parent.name}-{self.dialect}"

    @property
    def database(self) -> Path:
        """The SQLite file, or the statements that make the PostgreSQL database."""
        return self.folder / ("foldlog.sqlite" if self.dialect == "sqlite" else "foldlog.sql")

    @property
    def objects(self) -> Path:
        """The large attachments."""
        return self.folder / "objects"

    @property
    def writes(self) -> Path:
        """The calls that made it."""
        return self.folder / "writes.jsonl"

    @property
    def reads(self) -> Path:
        """The questions, and their answers."""
        return self.folder / "reads.jsonl"

    @property
    def exports(self) -> Path:
        """The exported sessions."""
        return self.folder / "exports"

    def export(self, session_id: str) -> Path:
        """Return where a session's export is."""
        return self.exports / f"{quote(session_id, safe='')}.jsonl"

    @contextmanager
    def restored(self, folder: Path) -> Iterator[tuple[str, Path]]:
        """Lend the URL of a copy of the database, and the copy of its attachments."""
        objects = folder / "objects"
        shutil.copytree(self.objects, objects)
        if self.dialect == "sqlite":
            shutil.copyfile(self.database, folder / "foldlog.db")
            yield f"sqlite:///{folder / 'foldlog.db'}", objects
            return
        with empty_database() as url:
            with psycopg.connect(url) as connection:
                make_roles(connection)  # no dump of a database has what belongs to the server
                connection.execute(self.database.read_bytes())
            yield url, objects


def all_golden() -> list[Golden]:
    """Return every golden database, the oldest release first."""
    return [Golden(path.parent) for path in sorted(HERE.glob("*/*/reads.jsonl"))]


@contextmanager
def serving(url: str, objects: Path, folder: Path, **environment: str) -> Iterator[Served]:
    """Lend a server on a database with its directory of attachments."""
    settings = {"FOLDLOG_OBJECT_DIRECTORY": str(objects), **environment}
    served = Served(url, folder, settings)
    try:
        yield served.start()
    finally:
        served.close()
