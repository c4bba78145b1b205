"""`foldlog keys`, and commands that carry a key."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from foldlog.persistence.store import open_store

from tests.cli.shell import Shell
from tests.conftest import SERVED, Servers
from tests.contract.calls import fresh_id
from tests.postgres import database
from tests.served import Served

KEY = re.compile(r"foldlog_([0-9a-f]{16})_[0-9a-f]{64}\n")


@pytest.fixture
def served(servers: Servers, request: pytest.FixtureRequest) -> Served:
    """A server of this module that asks for keys, on a SQLite file."""
    found = servers.guarded("sqlite-file")
    request.node.stash.setdefault(SERVED, []).append(found)
    return found


def made(shell: Shell, url: str, *options: str) -> str:
    """Make a key and return it."""
    printed = shell.ok("keys", "create", "--database-url", url, *options)
    assert KEY.fullmatch(printed)
    return printed.strip()


def test_the_first_key_makes_its_database_and_the_list_shows_no_secret(tmp_path: Path) -> None:
    shell, url = Shell("127.0.0.1:1"), f"sqlite:///{tmp_path / 'new.db'}"
    key = made(shell, url, "--role", "writer", "--tenant", "red", "--label", "a=b", "--name", "w")
    (row,) = shell.json_lines("keys", "list", "--database-url", url)
    assert row["id"] == key.split("_")[1]
    assert (row["tenant"], row["role"], row["labels"], row["name"], row["state"]) == (
        "red",
        "writer",
        {"a": "b"},
        "w",
        "valid",
    )
    shown = shell.ok("keys", "list", "--database-url", url)
    assert key.split("_")[2] not in shown + json.dumps(row)
    open_store(url).close()


def test_keys_are_revoked_once_and_unknown_ones_not_at_all(tmp_path: Path) -> None:
    shell, url = Shell("127.0.0.1:1"), f"sqlite:///{tmp_path / 'new.db'}"
    id_ = made(shell, url, "--role", "admin").split("_")[1]
    assert shell.ok("keys", "revoke", id_, "--database-url", url).startswith(f"revoked {id_}")
    for bad, said in ((id_, "is revoked already"), ("0" * 16, "there is no key 0000000000000000")):
        result = shell.run("keys", "revoke", bad, "--database-url", url)
        assert result.exit_code == 2
        assert said in result.stderr
    assert [row["state"] for row in shell.json_lines("keys", "list", "--database-url", url)] == [
        "revoked"
    ]


def test_keys_on_postgresql() -> None:
    shell = Shell("127.0.0.1:1")
    with database() as url:
        id_ = made(shell, url, "--role", "reader", "--expires", "2100-01-01").split("_")[1]
        (row,) = shell.json_lines("keys", "list", "--database-url", url)
        assert (row["id"], row["expires_ns"]) == (id_, 4_102_444_800_000_000_000)
        shell.ok("keys", "revoke", id_, "--database-url", url)


def test_commands_take_the_key_from_the_environment_or_a_file(
    served: Served, tmp_path: Path
) -> None:
    shell = Shell(served.address)
    key = made(shell, served.database_url, "--role", "writer")
    refused = shell.run("create", fresh_id())
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "no valid credentials" in refused.stderr
    assert shell.run("create", fresh_id(), FOLDLOG_API_KEY=key).exit_code == 0
    file = tmp_path / "key"
    file.write_text(f"{key}\n")
    shell.ok("--api-key-file", str(file), "create", fresh_id())
    assert shell.run("sessions", FOLDLOG_API_KEY_FILE=str(file)).exit_code == 0
    assert shell.run("sessions").exit_code == 2


def test_a_file_that_holds_no_key_is_named(tmp_path: Path) -> None:
    shell = Shell("127.0.0.1:1")
    absent = shell.run("--api-key-file", str(tmp_path / "none"), "sessions")
    assert absent.exit_code == 2
    assert "none cannot be read: No such file" in absent.stderr
    (tmp_path / "bad").write_text("hush\x00hush")
    bad = shell.run("--api-key-file", str(tmp_path / "bad"), "sessions")
    assert bad.exit_code == 2
    assert "hush" not in bad.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--role", "root"), "a role is one of reader, writer, admin"),
        (("--role", "admin", "--label", "x"), "a label is KEY=VALUE"),
        (("--role", "admin", "--tenant", ""), "tenant: it is 1 to 128 bytes"),
        (("--role", "admin", "--expires", "2001-01-01"), "expires: it has passed"),
        (("--role", "admin", "--expires", "tomorrow"), "is no time such as 2026-12-31"),
    ],
    ids=["role", "label", "tenant", "expires", "no time"],
)
def test_what_makes_no_key_is_said_in_a_line(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    result = Shell("127.0.0.1:1").run("keys", "create", "--database-url", url, *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "new.db").exists()


def test_the_audit_log_shows_labels_as_they_are_given_and_tells_others_whose_it_is(
    served: Served, tmp_path: Path
) -> None:
    url, shell = served.database_url, Shell(served.address)
    tenant = fresh_id()
    admin = made(shell, url, "--role", "admin", "--tenant", tenant)
    made(shell, url, "--role", "reader", "--tenant", tenant, "--label", "b=2", "--label", "a=1")
    file = tmp_path / "key"
    file.write_text(admin)
    shown = shell.run("--api-key-file", str(file), "audit", COLUMNS="250").stdout
    first, second = (line.rstrip() for line in shown.splitlines()[1:])
    assert first.endswith("role=admin")
    assert second.endswith("role=reader labels=a=1,b=2")

    file.write_text(made(shell, url, "--role", "writer", "--tenant", tenant))
    result = shell.run("--api-key-file", str(file), "audit")
    assert "it takes the key of an admin" in result.stderr


def test_a_usage_error_ends_before_it_says_where_help_is() -> None:
    result = Shell("127.0.0.1:1").run("keys", "create", "--role", "reader", "--label", "red")
    assert result.exit_code == 2
    assert "not 'red'. See: " in result.stderr
