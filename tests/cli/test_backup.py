"""Backups as the how-to says: a restored service answers, proves its log, and goes on."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from foldlog.client.client import Client
from foldlog.client.new_events import assistant, user
from foldlog.client.stored import CaughtUp, Event, FeedItem

from tests.cli.shell import Shell
from tests.cluster import Server
from tests.conftest import Servers
from tests.postgres import another_server, database, program, server
from tests.served import ROOT, NotServingError, Served

HOW_TO = (ROOT / "docs" / "how-to" / "backup.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", HOW_TO, re.MULTILINE | re.DOTALL)
NOWHERE = "127.0.0.1:1"


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


def command(mark: str) -> str:
    """Return the one shell block of the how-to that holds this."""
    (found,) = [block for block in BLOCKS if mark in block]
    return str(found)


def run(script: str, folder: Path, **variables: str) -> str:
    """Run a shell script as somebody would who has `foldlog` and PostgreSQL's programs."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    shim = programs / "foldlog"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m foldlog "$@"\n')
    shim.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}:{program('initdb').parent}"
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | variables | {"PATH": path, "PYTHONPATH": str(ROOT / "service")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def serving_copy(url: str, folder: Path) -> Iterator[Served]:
    folder.mkdir(exist_ok=True)
    served = Served(url, folder)
    try:
        yield served.start()
    finally:
        served.close()


def in_folder(served: Served) -> Path:
    """Return the folder of a served file, which is named as in the how-to."""
    file = Path(served.database_url.removeprefix("sqlite:///"))
    assert file.name == "foldlog.db"
    return file.parent


def restored_in(folder: Path) -> str:
    """Put the backup where the file was, as the how-to says, and return its URL."""
    run(command("cp backup.db").replace("foldlog serve", ""), folder)
    return f"sqlite:///{folder / 'foldlog.db'}"


@pytest.mark.parametrize("means", ["sqlite3 foldlog.db", "python3 -c 'import sqlite3"])
def test_a_sqlite_file_is_backed_up_while_it_is_served(
    means: str, servers: Servers, tmp_path: Path
) -> None:
    if shutil.which(means.split()[0]) is None:
        pytest.skip(f"no {means.split()[0]} on this machine")
    served = servers.fresh("sqlite-file")
    cursor = fill(served.address)
    folder = in_folder(served)
    run(command(means), folder)
    Shell(served.address).ok("append", "s", "after the backup")
    served.close()
    with serving_copy(restored_in(folder), tmp_path / "restored") as restored:
        assert_whole_and_going_on(restored.address, cursor)


def test_a_vacuumed_copy_is_a_backup_too(servers: Servers, tmp_path: Path) -> None:
    served = servers.fresh("sqlite-file")
    cursor = fill(served.address)
    folder = in_folder(served)
    with closing(sqlite3.connect(folder / "foldlog.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(folder / "backup.db")])
    served.close()
    with serving_copy(restored_in(folder), tmp_path / "restored") as restored:
        assert_whole_and_going_on(restored.address, cursor)


def test_a_sqlite_file_is_copied_once_the_service_is_stopped(
    servers: Servers, tmp_path: Path
) -> None:
    served = servers.fresh("sqlite-file")
    cursor = fill(served.address)
    served.terminate()
    folder = in_folder(served)
    assert not (folder / "foldlog.db-wal").exists()
    shutil.copy(folder / "foldlog.db", folder / "backup.db")
    with serving_copy(restored_in(folder), tmp_path / "restored") as restored:
        assert_whole_and_going_on(restored.address, cursor)


@pytest.fixture
def dumped(servers: Servers, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A dump of a database whose server has seen many transactions, and the feed's cursor in it."""
    for name in ("pg_dump", "pg_restore", "createdb"):
        program(name)
    with database() as url:
        burn_transaction_ids(url, 5_000)
        with serving_copy(url, tmp_path / "source") as served:
            cursor = fill(served.address)
            run(command("pg_dump"), tmp_path, FOLDLOG_DATABASE_URL=url)
        yield tmp_path, cursor


def burn_transaction_ids(url: str, count: int) -> None:
    loop = f"FOR i IN 1..{count} LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DO $$ BEGIN {loop}; END $$")


def restored_into(running: Server, folder: Path) -> tuple[str, str]:
    """Restore as the how-to says, and return the URL and what `foldlog migrate` said."""
    url = running.url("restored")
    addresses = {"SERVER_URL": running.url(), "RESTORED_URL": url}
    filling, migrate, migrating = command("pg_restore").rpartition("foldlog migrate")
    run(filling, folder, **addresses)
    return url, f"{migrate}{migrating}"


def test_a_dump_restored_into_a_new_cluster_serves_once_it_is_migrated(
    dumped: tuple[Path, str],
) -> None:
    folder, cursor = dumped
    with another_server() as running:
        url, migrating = restored_into(running, folder)
        refused = pytest.raises(NotServingError, match="foldlog migrate")
        with refused, serving_copy(url, folder / "refused"):
            pass
        told = Shell(NOWHERE).run("doctor", "--database-url", url)
        assert told.exit_code == 1
        assert "Run: foldlog migrate" in told.stdout
        assert "applied feed_offset" in run(migrating, folder, RESTORED_URL=url)
        with serving_copy(url, folder / "restored") as restored:
            prove(restored.address, url, folder)
            assert_whole_and_going_on(restored.address, cursor)


def prove(address: str, url: str, folder: Path) -> None:
    """Prove every session as the how-to says."""
    run(command("doctor").replace("foldlog verify SESSION", ""), folder, RESTORED_URL=url)
    proven = run(command("--all"), folder, FOLDLOG_ADDRESS=address)
    assert proven.count("each as it was written") == 2


def test_a_dump_restored_beside_the_original_serves_at_once(dumped: tuple[Path, str]) -> None:
    folder, cursor = dumped
    running = server()
    url, migrating = restored_into(running, folder)
    try:
        assert "nothing to apply" in run(migrating, folder, RESTORED_URL=url)
        with serving_copy(url, folder / "restored") as restored:
            assert_whole_and_going_on(restored.address, cursor)
    finally:
        running.execute("DROP DATABASE restored WITH (FORCE)")
