"""Backups as the how-to says: a restored service answers, proves its log, and goes on."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from foldlog.client.client import Client
from foldlog.client.new_events import assistant, user
from foldlog.client.stored import CaughtUp, Event, FeedItem
from foldlog.persistence.migrate import migrate

from tests.cli.shell import Shell
from tests.conftest import Servers
from tests.postgres import Server, another_server, database, program
from tests.served import NotServingError, Served


def fill(address: str) -> str:
    """Write two sessions, one a fork of the other, and return the feed's cursor after them."""
    with Client(address) as client:
        session = client.create("s", labels={"kept": "yes"})
        session.append(user("one"), assistant("two"))
        session.fork(at_seq=0, session_id="fork").append(assistant("another two"))
        return [each.cursor for each in until_caught_up(client)][-1]


def assert_whole_and_going_on(address: str, cursor: str) -> None:
    """Assert that what was backed up is there and proven, and that the feed goes on after it."""
    shell = Shell(address)
    assert [m["content"] for m in shell.json_lines("show", "s")] == ["one", "two"]
    assert [m["content"] for m in shell.json_lines("show", "fork")] == ["one", "another two"]
    assert shell.json("verify", "s")["intact"]
    assert shell.json("verify", "fork")["intact"]
    with Client(address) as client:
        client.session("s").append(user("after the restore"))
        client.create("new", labels={"kept": "yes"})
        assert [each.session_id for each in client.list(labels={"kept": "yes"})] == ["new", "s"]
        (event,) = [
            each.item
            for each in until_caught_up(client, cursor)
            if isinstance(each.item, Event) and each.session_id == "s"
        ]
        assert event.seq == 2


def until_caught_up(client: Client, cursor: str = "") -> Iterator[FeedItem]:
    """Yield what the feed holds after a cursor."""
    for each in client.watch_all(cursor):
        if isinstance(each.item, CaughtUp):
            return
        yield each


def online_copy(source: Path, target: Path) -> None:
    """What `sqlite3 SOURCE ".backup TARGET"` does."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def vacuum_into(source: Path, target: Path) -> None:
    """What `sqlite3 SOURCE "VACUUM INTO 'TARGET'"` does."""
    with closing(sqlite3.connect(source)) as old:
        old.execute("VACUUM INTO ?", [str(target)])


@contextmanager
def serving_copy(url: str, folder: Path) -> Iterator[Served]:
    folder.mkdir(exist_ok=True)
    served = Served(url, folder)
    try:
        yield served.start()
    finally:
        served.close()


@pytest.mark.parametrize("back_up", [online_copy, vacuum_into])
def test_a_sqlite_file_is_backed_up_while_it_is_served(
    back_up: Callable[[Path, Path], None], servers: Servers, tmp_path: Path
) -> None:
    served = servers.fresh("sqlite-file")
    cursor = fill(served.address)
    target = tmp_path / "backup.db"
    back_up(Path(served.database_url.removeprefix("sqlite:///")), target)
    Shell(served.address).ok("append", "s", "after the backup")
    served.close()
    with serving_copy(f"sqlite:///{target}", tmp_path / "restored") as restored:
        assert_whole_and_going_on(restored.address, cursor)


def test_a_sqlite_file_is_copied_once_the_service_is_stopped(
    servers: Servers, tmp_path: Path
) -> None:
    served = servers.fresh("sqlite-file")
    cursor = fill(served.address)
    served.terminate()
    file = Path(served.database_url.removeprefix("sqlite:///"))
    assert not file.with_name(f"{file.name}-wal").exists()
    shutil.copy(file, tmp_path / "copy.db")
    with serving_copy(f"sqlite:///{tmp_path / 'copy.db'}", tmp_path / "restored") as restored:
        assert_whole_and_going_on(restored.address, cursor)


@pytest.fixture
def dumped(servers: Servers, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A dump of a database whose server has seen many transactions, and the feed's cursor in it."""
    with database() as url:
        burn_transaction_ids(url, 5_000)
        with serving_copy(url, tmp_path / "source") as served:
            cursor = fill(served.address)
            file = tmp_path / "foldlog.dump"
            run("pg_dump", "--format=custom", f"--file={file}", url)
        yield file, cursor


def burn_transaction_ids(url: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection, connection.pipeline():
        for _ in range(count):
            connection.execute("SELECT pg_current_xact_id()")


def run(name: str, *arguments: str) -> None:
    subprocess.run([program(name), *arguments], check=True, capture_output=True)


def restored_into(running: Server, file: Path) -> str:
    running.execute("CREATE DATABASE restored TEMPLATE template0 ENCODING 'UTF8'")
    url = running.url("restored")
    run("pg_restore", "--no-owner", f"--dbname={url}", str(file))
    return url


def test_a_dump_restored_into_a_new_cluster_serves_once_it_is_migrated(
    dumped: tuple[Path, str], tmp_path: Path
) -> None:
    file, cursor = dumped
    with another_server() as running:
        url = restored_into(running, file)
        with pytest.raises(NotServingError, match="foldlog migrate"):
            Served(url, tmp_path).start()
        told = Shell("127.0.0.1:1").run("doctor", "--database-url", url)
        assert told.exit_code == 1
        assert "Run: foldlog migrate" in told.stdout
        assert migrate(url) == ["feed_offset"]
        with serving_copy(url, tmp_path / "restored") as restored:
            assert_whole_and_going_on(restored.address, cursor)


def test_a_dump_restored_beside_the_original_serves_at_once(
    dumped: tuple[Path, str], tmp_path: Path
) -> None:
    file, cursor = dumped
    with database() as url:
        run("pg_restore", "--no-owner", "--clean", f"--dbname={url}", str(file))
        assert migrate(url) == []
        with serving_copy(url, tmp_path / "restored") as restored:
            assert_whole_and_going_on(restored.address, cursor)
