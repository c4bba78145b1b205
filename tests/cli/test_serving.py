"""`foldlog serve` and `migrate` as processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from foldlog.persistence.postgres.schema import steps
from foldlog.persistence.store import open_store

from tests.cli.shell import Shell
from tests.postgres import empty_database
from tests.served import ROOT

DEADLINE_S = 120


def environment(**variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FOLDLOG_")}
    return kept | {"PYTHONPATH": str(ROOT / "service")} | variables


def foldlog(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "foldlog", *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@contextmanager
def serving(cwd: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Lend a process that serves on a free port, and the line it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "foldlog", "serve", "--listen", "127.0.0.1:0", *arguments],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def address_in(line: str) -> str:
    return line.removeprefix("Foldlog serves at ").split(" ")[0]


def test_serve_without_a_database_makes_one_here_and_says_where_it_serves(tmp_path: Path) -> None:
    with serving(tmp_path, "--address-file", "address") as (_, line):
        address = address_in(line)
        assert line == (
            f"Foldlog serves at {address} on sqlite:///foldlog.db. Stop it with Ctrl-C.\n"
        )
        assert (tmp_path / "address").read_text() == f"{address}\n"
        assert (tmp_path / "foldlog.db").exists()
        assert Shell(address).ok("create", "s") == "s\n"


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(stop: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        process.send_signal(stop)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_metrics_are_served_where_the_flag_says(tmp_path: Path) -> None:
    import urllib.request

    with serving(tmp_path, "--metrics-listen", "127.0.0.1:0", "--log-format", "json") as (
        process,
        line,
    ):
        Shell(address_in(line)).ok("create", "s")
        address = _logged_address(process)
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=DEADLINE_S) as answer:
            shown = answer.read().decode()
    assert 'foldlog_calls_total{code="OK",method="CreateSession"} 1.0' in shown


def _logged_address(process: subprocess.Popen[str]) -> str:
    import json

    assert process.stderr is not None
    for line in process.stderr:
        logged = json.loads(line)
        if logged["event"] == "metrics.listening":
            return str(logged["address"])
    raise AssertionError("no listener was logged")


def test_a_command_loads_only_what_it_needs(tmp_path: Path) -> None:
    heavy = (
        *("grpc", "google.protobuf", "psycopg", "rich", "eventsourcing", "orjson", "alembic"),
        "pydantic",
    )
    code = (
        "import sys; from foldlog.cli.app import app\n"
        "try: app(['signing-key', 'made.pem'])\n"
        "except SystemExit as end: assert not end.code\n"
        "ours = [name for name in sys.modules if name.startswith('foldlog.cli.')]\n"
        "assert 'foldlog.cli.serving' not in ours and 'foldlog.cli.anchoring' in ours, ours\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_database_in_use_is_named_with_its_process(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        done = foldlog("serve", "--listen", "127.0.0.1:0", cwd=tmp_path)
    assert done.returncode == 2
    assert f"in use by process {process.pid}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_address_in_use_is_said(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, line):
        taken = address_in(line)
        done = foldlog("serve", "--listen", taken, "--database-url", "sqlite:///b.db", cwd=tmp_path)
    assert done.returncode == 2
    assert f"cannot listen on {taken}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("--database-url", "mysql://x"), 2, "begins with sqlite:/// or postgresql://"),
        (("--database-url", "sqlite:///foreign"), 2, "is not a SQLite database"),
        (("--database-url", "sqlite:////nowhere/x.db"), 2, "/nowhere is no folder"),
        (("--listen", "nope"), 2, "an address is HOST:PORT"),
        (("--pool-size", "0"), 2, "FOLDLOG_POOL_SIZE is to be at least 1"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_what_keeps_it_from_serving_is_said_in_one_line(
    arguments: tuple[str, ...], code: int, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "foreign").write_text("a text that is there already")
    done = foldlog("serve", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "foreign").read_text() == "a text that is there already"


def another_applications(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


def of_a_newer_release(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()
    Path(f"{path}.lock").unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def cut_short(path: Path) -> None:
    path.write_bytes(b"SQLite format 3")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (another_applications, "is a database of another application"),
        (of_a_newer_release, "has schema version 99"),
        (cut_short, "is not a SQLite database"),
        (Path.mkdir, "cannot be read: Is a directory"),
    ],
    ids=["another application's", "a newer release's", "cut short", "a folder"],
)
def test_what_is_not_ours_is_refused_and_stays_as_it_is(
    make: Callable[[Path], None], expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.db"
    make(path)
    before = path.stat(), path.read_bytes() if path.is_file() else b""
    done = foldlog("serve", "--database-url", f"sqlite:///{path}", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert expected in done.stderr
    after = path.stat(), path.read_bytes() if path.is_file() else b""
    assert (after[0].st_mtime_ns, after[1]) == (before[0].st_mtime_ns, before[1])


@pytest.mark.parametrize("flag", ["--listen", "--metrics-listen"])
def test_plaintext_is_not_for_other_machines(flag: str, tmp_path: Path) -> None:
    done = foldlog("serve", "--listen", "127.0.0.1:0", flag, "0.0.0.0:0", cwd=tmp_path)
    assert done.returncode == 2
    assert "0.0.0.0:0 is reached from other machines, in plaintext" in done.stderr
    assert "--allow-plaintext" in done.stderr
    assert not (tmp_path / "foldlog.db").exists()


def test_an_address_that_others_reach_is_refused_without_keys(tmp_path: Path) -> None:
    done = foldlog("serve", "--listen", "0.0.0.0:0", "--allow-plaintext", cwd=tmp_path)
    assert done.returncode == 2
    assert "auth is none" in done.stderr
    assert "foldlog keys create" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_letting_everybody_in_is_logged(tmp_path: Path) -> None:
    aloud = ("--allow-plaintext", "--allow-anonymous")
    with serving(tmp_path, "--listen", "0.0.0.0:0", *aloud) as (process, line):
        assert line.startswith("Foldlog serves at 0.0.0.0:")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=DEADLINE_S)
    assert "WARNING server.anonymous address=0.0.0.0:0" in said


def test_serving_postgresql_never_migrates_and_migrate_says_what_it_did(tmp_path: Path) -> None:
    with empty_database() as url:
        refused = foldlog("serve", "--database-url", url, cwd=tmp_path)
        assert refused.returncode == 2
        assert "foldlog migrate" in refused.stderr
        first = foldlog("migrate", "--database-url", url, cwd=tmp_path)
        again = foldlog("migrate", "--database-url", url, cwd=tmp_path)
        with serving(tmp_path, "--database-url", url) as (_, line):
            assert Shell(address_in(line)).ok("create", "s") == "s\n"
    applied = "".join(f"applied {step}\n" for step in steps())
    assert first.stdout == f"{applied}{url} is up to date\n"
    assert again.stdout == f"{url} is up to date: nothing to apply\n"


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    with empty_database() as url:
        secret = url.replace("postgres@", "postgres:hush@")
        done = foldlog("migrate", "--database-url", secret, cwd=tmp_path)
    assert done.returncode == 0
    assert "hush" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_an_unreachable_database_is_unreachable(command: str, tmp_path: Path) -> None:
    done = foldlog(command, "--database-url", "postgresql://127.0.0.1:1/x", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("foldlog: the database cannot be used: ")
    assert done.stderr.endswith("Find out why with: foldlog doctor\n")


def test_tail_goes_on_live_and_ends_cleanly_with_ctrl_c(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, line):
        shell = Shell(address_in(line))
        shell.ok("create", "s")
        shell.ok("append", "s", "before")
        tail = subprocess.Popen(
            [sys.executable, "-m", "foldlog", "tail", "s", "--address", shell.address],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert tail.stdout is not None
        assert "before" in tail.stdout.readline()
        shell.ok("append", "s", "live")
        assert "live" in tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        rest, errors = tail.communicate(timeout=DEADLINE_S)
    assert (tail.returncode, rest, errors) == (0, "", "")


def test_a_reader_that_goes_away_ends_a_command_quietly(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, line):
        shell = Shell(address_in(line))
        shell.ok("create", "s")
        shell.ok("append", "s", "x" * 1_000_000)
        command = f"{sys.executable} -m foldlog show s --address {shell.address} | head -c 10"
        done = subprocess.run(
            ["/bin/bash", "-c", f"set -o pipefail; {command}"],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
