"""SQLite files: ours and not, taken by one process, durable."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from foldlog.persistence.errors import DatabaseFileError, SchemaError
from foldlog.persistence.migrate import migrate, pending
from foldlog.persistence.sqlite.connections import inspect
from foldlog.persistence.sqlite.file import APPLICATION_ID
from foldlog.persistence.sqlite.schema import steps
from foldlog.persistence.store import open_store

from tests.persistence.stores import row, rows

SESSION = UUID(int=1)
HOLD = """
import sys
from foldlog.persistence.store import open_store
store = open_store(sys.argv[1])
store.recorder.insert_events([])
print("open", flush=True)
sys.stdin.read()
"""
WRITE = """
import sys
from uuid import UUID
from foldlog.persistence.store import open_store
from tests.persistence.stores import row
store = open_store(sys.argv[1])
for version in range(1, 100_000):
    store.recorder.insert_events([row(UUID(int=1), version)])
    print(version, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a file may be made."""
    return tmp_path / "foldlog.db"


def url(path: Path) -> str:
    """Return the file's URL."""
    return f"sqlite:///{path}"


@contextmanager
def process(script: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a script on the file in a process of its own, from its first line of output on."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = subprocess.Popen(
        [sys.executable, "-c", script, url(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    with running:
        assert running.stdout is not None
        assert running.stdout.readline()
        yield running
        running.kill()


def text_file(path: Path) -> None:
    """Make a file that is no database."""
    path.write_text("Dear diary")


def short_file(path: Path) -> None:
    """Make a file shorter than a header."""
    path.write_bytes(b"SQLite")


def foreign_database(path: Path) -> None:
    """Make another application's database."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


def foreign_log(path: Path) -> None:
    """Make another application's database whose rows stand in its write-ahead log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA application_id = 7")


FOREIGN = [text_file, short_file, foreign_database, foreign_log]


@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("use", [open_store, migrate, pending], ids=lambda use: use.__name__)
def test_a_file_that_is_not_ours_is_refused_and_untouched(
    path: Path, make: Callable[[Path], None], use: Callable[[str], object]
) -> None:
    make(path)
    before = path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())
    with pytest.raises(DatabaseFileError, match=str(path)):
        use(url(path))
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())) == before


def test_a_folder_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(DatabaseFileError, match=str(path)):
        open_store(url(path))


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFileError, match="nowhere"):
        open_store(url(tmp_path / "nowhere" / "foldlog.db"))


def test_an_empty_file_becomes_ours(path: Path) -> None:
    path.touch()
    open_store(url(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


def test_a_file_of_a_newer_release_is_refused(path: Path) -> None:
    open_store(url(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaError, match="99"):
        open_store(url(path))


def test_a_second_process_is_refused_and_told_who_has_the_file(path: Path) -> None:
    with process(HOLD, path) as holder, pytest.raises(DatabaseFileError) as caught:
        open_store(url(path))
    assert str(path) in str(caught.value)
    assert str(holder.pid) in str(caught.value)


def test_a_second_store_in_the_same_process_is_refused(path: Path) -> None:
    store = open_store(url(path))
    with pytest.raises(DatabaseFileError):
        open_store(url(path))
    store.close()
    open_store(url(path)).close()


def test_a_link_to_the_file_is_the_same_file(path: Path) -> None:
    store = open_store(url(path))
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(DatabaseFileError):
        open_store(url(link))
    store.close()


def test_a_file_can_be_inspected_while_a_process_has_it(path: Path) -> None:
    with process(HOLD, path), closing(inspect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM foldlog_events").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM foldlog_events")


def test_a_killed_process_leaves_every_acknowledged_row_and_lets_the_file_go(path: Path) -> None:
    with process(WRITE, path) as writer:
        assert writer.stdout is not None
        for _ in range(50):
            writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in writer.stdout.read().split()]
    store = open_store(url(path))
    last = store.recorder.last_version(SESSION)
    assert last is not None
    assert last >= max(acknowledged, default=51)
    versions = [each.originator_version for each in store.recorder.select_events(SESSION)]
    assert versions == [*range(1, last + 1)]
    store.close()


def test_rows_are_there_after_a_restart(path: Path) -> None:
    store = open_store(url(path))
    store.recorder.insert_events(rows(SESSION, 3))
    store.close()
    store = open_store(url(path))
    assert store.recorder.insert_events([row(SESSION, 4)]) == range(4, 5)
    assert len(store.recorder.select_events(SESSION)) == 4
    store.close()


def test_every_commit_is_synced(path: Path) -> None:
    store = open_store(url(path))
    with cast("Any", store.recorder).datastore.writer() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_closing_leaves_no_log_behind(path: Path) -> None:
    store = open_store(url(path))
    store.recorder.insert_events(rows(SESSION, 3))
    store.recorder.select_events(SESSION)
    store.close()
    assert sorted(each.name for each in path.parent.iterdir()) == ["foldlog.db", "foldlog.db.lock"]


def test_migrating_a_file_twice_applies_nothing_the_second_time(path: Path) -> None:
    names = [step.name.removesuffix(".sql") for step in steps()]
    assert pending(url(path)) == names
    assert names[0] == "0001_events_and_index"
    assert not path.exists()
    assert migrate(url(path)) == names
    assert pending(url(path)) == migrate(url(path)) == []


@pytest.mark.parametrize("bad", ["", "mysql://x", "sqlite://x", "foldlog.db"])
def test_a_url_of_another_kind_is_refused(bad: str) -> None:
    for use in (open_store, migrate, pending):
        with pytest.raises(ValueError, match="sqlite:///"):
            use(bad)
