"""Commands against a running service: what they do, print and exit with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from foldlog.settings import described

from tests.cli.shell import Shell

REQUEST: dict[str, Any] = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What time is it?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
    ],
}
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST))
    return file


@pytest.fixture
def told(shell: Shell, session: str, request_file: Path) -> str:
    """The id of a session that holds the request's messages."""
    shell.ok("append", session, "--from", str(request_file))
    return session


def test_create_prints_the_id_and_makes_one_where_none_is_given(shell: Shell) -> None:
    made = shell.ok("create").strip()
    assert shell.json("info", made)["session_id"] == made


def test_append_takes_text_from_the_line_or_from_stdin(shell: Shell, session: str) -> None:
    assert shell.ok("append", session, "hello") == "appended 0\n"
    shell.ok("append", session, "--role", "assistant", stdin="from a pipe")
    messages = shell.json_lines("show", session)
    assert [(m["role"], m["content"]) for m in messages] == [
        ("user", "hello"),
        ("assistant", "from a pipe"),
    ]


def test_messages_of_a_request_can_be_appended_and_copied(shell: Shell, told: str) -> None:
    printed = shell.ok("show", told, "--json")
    copy = shell.ok("create").strip()
    assert shell.ok("append", copy, "--from", "-", stdin=printed) == "appended 0 to 3\n"
    assert "4 messages in common" in shell.ok("diff", told, copy)


def test_a_repeated_request_id_writes_once(shell: Shell, session: str) -> None:
    for _ in range(2):
        shell.ok("append", session, "once", "--request-id", "r1")
    assert len(shell.json_lines("show", session)) == 1


def test_validate_only_writes_nothing(shell: Shell, session: str) -> None:
    assert shell.ok("append", session, "x", "--validate-only") == "would append 0\n"
    assert shell.json_lines("show", session) == []


def test_a_lost_race_is_bad_input_and_says_what_to_do(shell: Shell, told: str) -> None:
    result = shell.run("append", told, "x", "--expected-next-seq", "1")
    assert result.exit_code == 2
    assert result.stderr == (
        "foldlog: expected next_seq 1, found 4. Read the session again, then repeat the write.\n"
    )


def test_replace_says_what_it_shadows_and_what_it_parts(shell: Shell, told: str) -> None:
    result = shell.run("replace", told, "1", "2", "Asked for the time.")
    assert result.stdout == "appended 4\n  4 stands at 1 and shadows 1, 2\n"
    assert result.stderr == "  leaves results without a call: c1\n"


def test_replace_can_be_made_to_refuse_to_part_a_call_from_its_result(
    shell: Shell, told: str
) -> None:
    result = shell.run("replace", told, "1", "2", "x", "--require-balanced")
    assert result.exit_code == 2
    assert "Widen the range" in result.stderr


def test_show_has_what_the_model_sees_and_all_has_what_became_of_the_rest(
    shell: Shell, told: str
) -> None:
    shell.ok("replace", told, "1", "3", "It was noon.")
    shown, everything = shell.ok("show", told), shell.ok("show", told, "--all")
    assert "4@1   system    It was noon." in shown
    assert "What time" not in shown
    assert "shadowed by 4\n                  What time is it?" in everything
    assert "in place of 1 to 3, 3 events" in everything


def test_show_at_a_seq_is_as_it_was_then(shell: Shell, told: str) -> None:
    shell.ok("replace", told, "1", "3", "It was noon.")
    assert [m["seq"] for m in shell.json_lines("show", told, "--at", "2")] == [0, 1, 2]
    assert "What time is it?" in shell.ok("show", told, "--at", "2")


def test_rewind_undoes_and_warns_of_calls_without_a_result(shell: Shell, told: str) -> None:
    result = shell.run("rewind", told, "2")
    assert result.stdout == "rewound to 2 by event 4\n"
    assert result.stderr == "  calls without a result there: c1\n"
    assert "undone by 4" in shell.ok("show", told, "--all")


def test_a_fork_shares_the_log_up_to_a_seq(shell: Shell, told: str) -> None:
    child = shell.ok("fork", told, "--at", "1", "--label", "try=2").strip()
    about = shell.json("info", child)
    assert about["parent"] == {"session_id": told, "at_seq": 1}
    assert about["labels"] == {"try": "2"}
    compared = shell.json("diff", told, child)
    assert (compared["common_count"], compared["shared_seq"]) == (2, 1)
    assert [m["seq"] for m in compared["left"]] == [2, 3]


def test_snapshot_says_what_it_dropped(shell: Shell, told: str) -> None:
    shell.ok("replace", told, "1", "3", "It was noon.")
    assert shell.ok("snapshot", told).startswith("dropped 3 events; history is whole from ")
    assert "its body was dropped" in shell.ok("show", told, "--all")


def test_sessions_are_listed_by_label_with_a_limit(shell: Shell) -> None:
    mark = uuid4().hex
    made = [shell.ok("create", "--label", f"mark={mark}").strip() for _ in range(3)]
    listed = shell.json_lines("sessions", "--label", f"mark={mark}")
    assert sorted(each["session_id"] for each in listed) == sorted(made)
    assert len(shell.json_lines("sessions", "--label", f"mark={mark}", "--limit", "2")) == 2
    assert made[0] in shell.ok("sessions", "--label", f"mark={mark}")


def test_labels_are_set_and_removed(shell: Shell) -> None:
    session = shell.ok("create", "--label", "a=1", "--label", "b=2").strip()
    shell.ok("label", session, "a-", "c=3-")
    assert shell.json("info", session)["labels"] == {"b": "2", "c": "3-"}


def test_a_deleted_session_is_said_to_be_deleted(shell: Shell, session: str) -> None:
    shell.ok("delete", session)
    result = shell.run("show", session)
    assert result.exit_code == 2
    assert "was deleted" in result.stderr


def test_a_right_request_passes(shell: Shell, told: str, request_file: Path) -> None:
    result = shell.run("check", told, str(request_file))
    assert result.exit_code == 0
    assert result.stdout.startswith("✓ The request can be derived from the log: 4 messages.")
    assert "the log has none" in result.stderr


def test_a_wrong_request_is_a_finding_that_says_what_is_wrong(
    shell: Shell, told: str, tmp_path: Path
) -> None:
    wrong = json.loads(json.dumps(REQUEST))
    wrong["messages"][1]["content"] = "What day is it?"
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(wrong))
    result = shell.run("check", told, str(file))
    assert result.exit_code == 1
    assert "- only in the log      user  What time is it?" in result.stdout
    assert "+ only in the request  user  What day is it?" in result.stdout
    document = json.loads(shell.run("check", told, str(file), "--json").stdout)
    assert document["ok"] is False
    assert document["violation"]["kind"] == "MISSING_MESSAGE"
    assert document["violation"]["log_seq"] == 1


def test_a_request_is_checked_against_the_log_as_it_was(
    shell: Shell, told: str, request_file: Path
) -> None:
    shell.ok("append", told, "later")
    assert shell.run("check", told, str(request_file)).exit_code == 1
    assert shell.run("check", told, str(request_file), "--at", "3").exit_code == 0


def test_verify_says_how_many_rows_are_as_written(shell: Shell, told: str) -> None:
    assert "5 rows, each as it was written" in shell.ok("verify", told)
    found = shell.json("verify", told)
    assert (found["intact"], len(bytes.fromhex(found["chain"]))) == (True, 32)


def test_export_and_import_make_the_same_session(shell: Shell, told: str, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    shell.ok("export", told, str(file))
    copy = shell.ok("import", str(file), "--session", f"copy-{uuid4().hex}").strip()
    assert shell.json_lines("show", copy, "--all") == shell.json_lines("show", told, "--all")
    assert not [*tmp_path.glob("*.part")]


def test_export_and_import_go_through_pipes(shell: Shell, told: str) -> None:
    written = shell.ok("export", told)
    assert json.loads(written.splitlines()[0])["session_id"] == told
    copy = shell.ok("import", "-", "--session", f"copy-{uuid4().hex}", stdin=written).strip()
    assert len(shell.json_lines("show", copy)) == 4


def test_export_does_not_overwrite_unless_told_to(shell: Shell, told: str, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text("mine")
    assert shell.run("export", told, str(file)).exit_code == 2
    assert file.read_text() == "mine"
    shell.ok("export", told, str(file), "--force")
    assert file.read_text() != "mine"


def test_a_failed_export_leaves_no_file(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("export", "no-such-session", str(tmp_path / "f")).exit_code == 2
    assert [*tmp_path.iterdir()] == []


def test_tail_prints_what_is_there_and_ends_if_it_is_not_to_follow(shell: Shell, told: str) -> None:
    assert [e["seq"] for e in shell.json_lines("tail", told, "--no-follow")] == [0, 1, 2, 3]
    assert "12:00" in shell.ok("tail", told, "--no-follow", "--from", "3")


def test_options_that_stand_before_the_command_hold_too(shell: Shell, told: str) -> None:
    away = Shell(NOWHERE)
    printed = away.ok("--address", shell.address, "--json", "info", told)
    assert json.loads(printed)["session_id"] == told


@pytest.mark.parametrize(
    "line",
    [
        ("sessions",),
        ("show", "s"),
        ("append", "s", "x"),
        ("verify", "s"),
        ("export", "s"),
        ("tail", "s"),
    ],
    ids=lambda line: str(line[0]),
)
def test_an_unreachable_service_is_said_in_one_line(line: tuple[str, ...]) -> None:
    result = Shell(NOWHERE).run(*line)
    assert result.exit_code == 3
    assert result.stderr == (
        f"foldlog: nothing answers at {NOWHERE}. Start the service with `foldlog serve`, or name"
        " it with --address.\n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (("nope",), "No such command"),
        (("show",), "Missing argument 'SESSION'"),
        (("show", "s", "--nope"), "No such option"),
        (("--nope",), "No such option"),
        (("create", "s", "--label", "x"), "a label is KEY=VALUE"),
        (("append", "s", "--role", "robot", "x"), "Invalid value for '--role'"),
        (("check", "s", "/nowhere"), "cannot be read"),
        (("import", "/nowhere"), "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_is_said_in_one_line(line: tuple[str, ...], expected: str) -> None:
    result = Shell(NOWHERE).run(*line)
    assert result.exit_code == 2
    assert result.stderr.startswith("foldlog: ")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_id_cannot_steer_the_terminal(shell: Shell) -> None:
    session = shell.ok("create", f"\x1b[2J{uuid4().hex}").strip()
    assert session.startswith("\\x1b[2J")
    listed = shell.ok("sessions", "--limit", "0")
    assert session in listed
    assert "\x1b" not in listed


def test_without_a_command_the_help_is_printed() -> None:
    printed = Shell(NOWHERE).ok()
    assert "Exit codes" in printed
    assert "doctor" in printed


def test_help_for_serve_cuts_no_name_off_in_a_narrow_terminal(shell: Shell) -> None:
    printed = shell.run("serve", "--help", COLUMNS="80", TERMINAL_WIDTH="80").stdout
    flags = [f"--{each.name.replace('_', '-')}" for each in described() if not each.is_secret]
    assert [each for each in flags if each not in printed.split()] == []
    names = [each.environment_name for each in described() if not each.is_secret]
    assert [each for each in names if each not in printed] == []
    assert max(map(len, printed.splitlines())) <= 80
