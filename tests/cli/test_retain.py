"""`foldlog retain`: rules by label and age, tried first, then applied."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from foldlog import SessionInfo
from foldlog.cli.retention_rules import Action, Rule, parse, rule_of

from tests.cli.shell import Shell

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def info(labels: dict[str, str], created_ago: timedelta, written_ago: timedelta) -> SessionInfo:
    created, written = (int((NOW - ago).timestamp()) * 10**9 for ago in (created_ago, written_ago))
    return SessionInfo("s", 1, labels, "", created, written)


@pytest.fixture
def tag() -> str:
    """A label's value that no other test uses."""
    return uuid4().hex


def rules_file(folder: Path, tag: str, action: str, more: str = "") -> str:
    """Write rules that sessions with the tag fall under at once, and others never."""
    file = folder / "rules.toml"
    file.write_text(
        f'[[rules]]\nname = "tagged"\naction = "{action}"\nlabels = {{ tag = "{tag}" }}\n'
        f'not_written_for = "0m"\n{more}\n'
        f'[[rules]]\naction = "delete"\nlabels = {{ tag = "{tag}" }}\ncreated_ago = "52w"\n'
    )
    return str(file)


@pytest.mark.parametrize(
    ("labels", "created", "written", "expected"),
    [
        ({"env": "test", "a": "b"}, 40, 31, "tests"),
        ({"env": "test"}, 40, 29, None),
        ({"env": "prod"}, 40, 31, None),
        ({}, 400, 0, "old"),
        ({"env": "test"}, 400, 31, "tests"),
    ],
)
def test_the_first_rule_that_a_session_meets_is_its_own(
    labels: dict[str, str], created: int, written: int, expected: str | None
) -> None:
    rules = [
        Rule("tests", Action.DELETE, {"env": "test"}, timedelta(days=30)),
        Rule("old", Action.ERASE, created_ago=timedelta(weeks=52)),
    ]
    found = rule_of(rules, info(labels, timedelta(created), timedelta(written)), NOW)
    assert (found and found.name) == expected


def test_rules_are_read_in_order() -> None:
    text = """
        [[rules]]
        name = "scratch"
        action = "erase"
        labels = { env = "test", team = "a" }
        not_written_for = "30d"
        created_ago = "8w"
        include_forks = true
        [[rules]]
        action = "snapshot"
        not_written_for = "12 h"
    """
    labels = {"env": "test", "team": "a"}
    ages = timedelta(days=30), timedelta(weeks=8)
    assert parse(text) == [
        Rule("scratch", Action.ERASE, labels, *ages, include_forks=True),
        Rule("rule 2", Action.SNAPSHOT, {}, timedelta(hours=12)),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it has no"),
        ("rules = 3", "it has no"),
        ("[[rules", "it is not TOML"),
        ("other = 1\n[[rules]]\n", "other: only"),
        ('[[rules]]\nnot_written_for = "1d"', "rule 1.action: one of delete, snapshot, erase"),
        ('[[rules]]\naction = "delete"', "rule 1.not_written_for: an age is required"),
        ('[[rules]]\naction = "delete"\nnot_written_for = "1y"', "such as 90m"),
        ('[[rules]]\naction = "delete"\nage = "1d"', "rule 1.age: it is none of"),
        (
            '[[rules]]\naction = "delete"\nnot_written_for = "1d"\nlabels = { a = 1 }',
            "rule 1.labels",
        ),
        (
            '[[rules]]\naction = "delete"\nnot_written_for = "1d"\ninclude_forks = true',
            "rule 1.include_forks: only erase",
        ),
    ],
)
def test_what_is_no_rule_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    shell: Shell, tmp_path: Path, tag: str
) -> None:
    tagged = shell.ok("create", "--label", f"tag={tag}").strip()
    file = rules_file(tmp_path, tag, "erase")
    said = shell.ok("retain", "--rules", file, "--dry-run")
    assert said.splitlines()[0] == "tagged: 1 of 1 sessions would be erased"
    (line,) = shell.json_lines("retain", "--rules", file, "--dry-run")
    assert line == {"session_id": tagged, "rule": "tagged", "action": "erase", "dry_run": True}
    assert shell.json("info", tagged)["session_id"] == tagged


@pytest.mark.parametrize(("action", "done"), [("delete", "deleted"), ("erase", "erased")])
def test_sessions_go_and_a_second_run_finds_none(
    shell: Shell, tmp_path: Path, tag: str, action: str, done: str
) -> None:
    tagged = [shell.ok("create", "--label", f"tag={tag}").strip() for _ in range(3)]
    other = shell.ok("create", "--label", f"tag={tag}-not").strip()
    file = rules_file(tmp_path, tag, action)
    said = shell.ok("retain", "--rules", file)
    assert said.splitlines() == [
        f"tagged: 3 of 3 sessions {done}",
        "rule 2: 0 of 0 sessions deleted",
    ]
    assert shell.ok("retain", "--rules", file).startswith("tagged: 0 of 0")
    assert [shell.run("info", each).exit_code for each in (*tagged, other)] == [2, 2, 2, 0]


def test_a_snapshot_keeps_the_session(shell: Shell, tmp_path: Path, tag: str) -> None:
    tagged = shell.ok("create", "--label", f"tag={tag}").strip()
    shell.ok("append", tagged, "hello")
    said = shell.ok("retain", "--rules", rules_file(tmp_path, tag, "snapshot"))
    assert said.startswith("tagged: 1 of 1 sessions snapshotted")
    assert "hello" in shell.ok("show", tagged)


def test_what_forks_read_is_told_and_the_rest_goes(shell: Shell, tmp_path: Path, tag: str) -> None:
    parent, alone = (shell.ok("create", "--label", f"tag={tag}").strip() for _ in range(2))
    shell.ok("append", parent, "a")
    child = shell.ok("fork", parent).strip()
    result = shell.run("retain", "--rules", rules_file(tmp_path, tag, "erase"))
    assert result.exit_code == 1
    assert result.stdout.startswith("tagged: 1 of 2 sessions erased")
    assert f"{parent} was refused" in result.stderr
    assert child in result.stderr
    assert [shell.run("info", each).exit_code for each in (parent, alone)] == [0, 2]
    included = rules_file(tmp_path, tag, "erase", "include_forks = true")
    assert shell.ok("retain", "--rules", included).startswith("tagged: 1 of 1 sessions erased")
    assert [shell.run("info", each).exit_code for each in (parent, child)] == [2, 2]


def test_a_file_that_is_no_rules_file_is_named(shell: Shell, tmp_path: Path) -> None:
    missing = shell.run("retain", "--rules", str(tmp_path / "none.toml"))
    assert missing.exit_code == 2
    assert "none.toml cannot be read" in missing.stderr
