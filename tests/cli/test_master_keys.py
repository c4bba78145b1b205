"""`foldlog master-key`: keys made, seen, and rotated under a service that goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.contract.attachments import got, looking, put, sample
from tests.contract.calls import Calls
from tests.contract.said import user
from tests.encryption.files import rows
from tests.encryption.keys import MASTER_KEY, master_key
from tests.served import Served

EVENTS = "SELECT originator_id, originator_version, state FROM foldlog_events ORDER BY 1, 2"
OLD, NEW = MASTER_KEY, master_key("second")


def command(served: Served, keys: str, *arguments: str) -> str:
    """Run a command of master keys on the served database, and return what it printed."""
    result = Shell("").run(
        "master-key",
        *arguments,
        "--database-url",
        served.database_url,
        FOLDLOG_MASTER_KEYS=keys,
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_new_master_key_is_a_line_of_a_file(tmp_path: Path) -> None:
    shell = Shell("")
    lines = [shell.ok("master-key", "new"), shell.ok("master-key", "new", "mine")]
    assert lines[1].startswith("mine:")
    file = tmp_path / "keys"
    file.write_text("".join(lines))
    file.chmod(0o600)
    url = f"sqlite:///{tmp_path / 'foldlog.db'}"
    arguments = ("--database-url", url, "--master-key-file", str(file))
    assert shell.ok("master-key", "list", *arguments) == ""
    assert "wrapped 0 keys" in shell.ok("master-key", "rotate", *arguments)
    file.chmod(0o644)
    refused = shell.run("master-key", "list", *arguments)
    assert refused.exit_code == 2
    assert f"chmod 600 {file}" in refused.output.replace("\n", "")


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
def test_a_rotated_master_key_is_needed_no_more_and_no_event_changed(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, FOLDLOG_MASTER_KEYS=OLD, FOLDLOG_OBJECT_INLINE_BYTES="1000")
    logs = [Calls.create(served.stub) for _ in range(3)]
    for log in logs:
        digests = [put(served.stub, sample(size)).sha256 for size in (10, 5_000)]
        log.append(user("a"), looking(*digests))
    served.terminate()
    before = rows(served.database_url, EVENTS)
    assert command(served, f"{NEW} {OLD}", "list") == "first: 3 sessions, 2 attachments\n"
    said = "wrapped 3 keys of sessions and 2 of attachments by second\n"
    assert command(served, f"{NEW} {OLD}", "rotate") == said
    assert command(served, NEW, "list") == "second: 3 sessions, 2 attachments (current)\n"
    assert rows(served.database_url, EVENTS) == before
    served.set_environment(FOLDLOG_MASTER_KEYS=NEW)
    served.start()
    assert [log.texts() for log in logs] == [["a", ""]] * 3
    assert [got(served.stub, each) for each in digests] == [sample(10), sample(5_000)]
    logs[0].append(user("b"))
    assert logs[0].verify().intact


def test_postgres_is_rotated_while_the_service_writes(serve: Callable[..., Served]) -> None:
    served = serve("postgres", FOLDLOG_MASTER_KEYS=f"{OLD} {NEW}")
    logs = [Calls.create(served.stub) for _ in range(20)]
    command(served, f"{NEW} {OLD}", "rotate")
    for log in logs:
        log.append(user("after"))
    late = Calls.create(served.stub)
    assert command(served, f"{NEW} {OLD}", "list").splitlines() == [
        "first: 1 sessions, 0 attachments",
        "second: 20 sessions, 0 attachments (current)",
    ]
    served.terminate()
    command(served, f"{NEW} {OLD}", "rotate")
    served.set_environment(FOLDLOG_MASTER_KEYS=NEW)
    served.start()
    assert [log.texts() for log in logs] == [["after"]] * 20
    assert late.texts() == []


def test_a_missing_master_key_is_named(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_MASTER_KEYS=OLD)
    Calls.create(served.stub)
    served.terminate()
    shell = Shell("")
    arguments = ("--database-url", served.database_url)
    listed = shell.run("master-key", "list", *arguments, FOLDLOG_MASTER_KEYS=NEW)
    assert listed.exit_code == 1
    assert listed.stdout == "first: 1 sessions, 0 attachments (missing here)\n"
    rotated = shell.run("master-key", "rotate", *arguments, FOLDLOG_MASTER_KEYS=NEW)
    assert rotated.exit_code == 2
    assert "the master key 'first' is missing" in rotated.stderr
    none = shell.run("master-key", "rotate", *arguments)
    assert none.exit_code == 2
    said = "no master keys are set: name a file --master-key-file, or set FOLDLOG_MASTER_KEY_FILE"
    assert said in none.stderr
