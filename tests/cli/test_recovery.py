"""`foldlog recover` and `unresolved`."""

from __future__ import annotations

import foldlog
import pytest

from tests.cli.shell import Shell


@pytest.fixture
def crashed(shell: Shell, session: str) -> str:
    """The id of a session whose worker died between a dispatch and its result."""
    with foldlog.Client(shell.address) as client:
        client.session(session).append(
            foldlog.turn_start(1),
            foldlog.user("q"),
            foldlog.step_start(1),
            foldlog.assistant("", tool_calls=[foldlog.ToolCall(i, "charge", "{}") for i in "ab"]),
            foldlog.tool_call("a", name="charge", idempotency_key="key-1"),
        )
    return session


def test_a_plan_says_what_is_open_and_changes_nothing(shell: Shell, crashed: str) -> None:
    assert shell.ok("recover", crashed, "--plan").splitlines() == [
        "a turn is open since 0",
        "a step is open since 2",
        "call a of charge at 3 is outcome unknown: it may have had its effect"
        " (idempotency key key-1)",
        "call b of charge at 3 is not started: it had no effect",
    ]
    assert shell.json("info", crashed)["next_seq"] == 5


def test_recovering_closes_and_says_the_epoch(shell: Shell, crashed: str) -> None:
    told = shell.ok("recover", crashed, "--owner", "me").splitlines()
    assert told[-2:] == ["closed it with 4 events", "writer epoch 1, next seq 9"]
    assert shell.ok("recover", crashed, "--plan") == "nothing is open\n"
    again = shell.json("recover", crashed)
    assert (again["writer_epoch"], again["closing_seqs"]) == (2, [])
    assert again["plan"]["writer_epoch"] == 1


def test_a_lost_takeover_is_bad_input(shell: Shell, crashed: str) -> None:
    shell.ok("recover", crashed, "--expected-epoch", "0")
    result = shell.run("recover", crashed, "--expected-epoch", "0")
    assert result.exit_code == 2
    assert "Another worker has the session" in result.stderr


def test_a_plan_as_json_names_risks(shell: Shell, crashed: str) -> None:
    plan = shell.json("recover", crashed, "--plan")
    assert [(call["call_id"], call["risk"]) for call in plan["owed_calls"]] == [
        ("a", "outcome_unknown"),
        ("b", "not_started"),
    ]
    assert plan["open_turn_seqs"] == [0]


def test_unresolved_lists_calls(shell: Shell, crashed: str) -> None:
    header, line = shell.ok("unresolved", crashed).splitlines()
    assert header.split() == ["DISPATCHED", "SESSION", "SEQ", "CALL", "TOOL", "IDEMPOTENCY", "KEY"]
    assert line.split()[2:] == [crashed, "4", "a", "charge", "key-1"]
    (call,) = shell.json_lines("unresolved", crashed)
    assert (call["call_id"], call["seq"]) == ("a", 4)
    shell.ok("recover", crashed)
    assert shell.ok("unresolved", crashed) == ""


def test_unresolved_lists_calls_of_every_session(shell: Shell, crashed: str) -> None:
    calls = shell.json_lines("unresolved", "--limit", "0")
    assert crashed in {call["session_id"] for call in calls}
