"""`foldlog why` and `request`, as a person reads them and as JSON."""

from __future__ import annotations

import pytest
from foldlog import Client, Header, replacing, system, user

from tests.cli.shell import Shell

HEADER = Header(provider="p", model="m1", system_prompt="Be brief.")


@pytest.fixture
def broken(shell: Shell, session: str) -> str:
    """A session whose third step lost two messages to a replace, the fourth all to a header."""
    with Client(shell.address) as client:
        told = client.session(session)
        told.begin_step(user("a"), user("b"), user("c"), header=HEADER)
        told.begin_step(user("d"))
        told.append(replacing(system("summary"), start=2, stop=3))
        told.begin_step()
        told.begin_step(header=Header(provider="p", model="m2"))
    return session


def test_every_break_is_told_with_its_cause_and_its_price(shell: Shell, broken: str) -> None:
    lines = shell.ok("why", broken).splitlines()
    assert lines[0] == "✗ Step 8: a replace took messages away that the provider had cached"
    assert lines[1] == "  Of the 4 messages of step 5 the first still serves."
    assert lines[2].startswith("  Lost: 3 messages, ")
    assert lines[3] == "  Cause: event 7, a system message in place of 2, 3"
    assert lines[4] == "✗ Step 9: the model and the system prompt changed"
    assert lines[6].startswith("  Lost: 3 messages, ")
    assert lines[7] == "  Cause: event 10, request header: p m2"


def test_one_step_is_told(shell: Shell, broken: str) -> None:
    assert shell.ok("why", broken, "0") == "Step 0 is the first: there is no request before it.\n"
    told = shell.ok("why", broken, "5")
    assert told == "✓ Step 5 only adds to the request of step 0: its cache serves.\n"


def test_json_has_the_names_of_the_wire(shell: Shell, broken: str) -> None:
    replaced, changed = shell.json_lines("why", broken)
    assert (replaced["kind"], replaced["message_index"], replaced["cause_seq"]) == ("REPLACE", 1, 7)
    assert (changed["kind"], changed["header_fields"]) == ("HEADER", ["model", "system_prompt"])
    assert "message_index" not in changed


def test_a_session_without_breaks(shell: Shell, session: str) -> None:
    told = shell.ok("why", session)
    assert told == "✓ Each request only added to the one before: nothing was lost.\n"
    result = shell.run("why", session, "0")
    assert result.exit_code == 2


def test_a_request_is_printed_again(shell: Shell, broken: str) -> None:
    told = shell.ok("request", broken, "--step", "0")
    assert "model: m1\nsystem_prompt: Be brief.\n" in told
    assert [word in told for word in ("a", "b", "c", "built at 5")] == [True] * 4
    first = shell.json("request", broken, "--step", "0")
    assert [each["content"] for each in first["messages"]] == ["a", "b", "c"]
    assert first["header"]["model"] == "m1"
    assert shell.json("request", broken, "--at", "4", "--independent") == first
    assert shell.json("request", broken)["header"]["model"] == "m2"
    assert shell.run("request", broken, "--step", "0", "--at", "1").exit_code == 2


def test_verify_makes_the_recorded_requests_again(shell: Shell, session: str) -> None:
    with Client(shell.address) as client:
        told = client.session(session)
        step = told.begin_step(user("a"), header=HEADER)
        told.record_request(step.request)
        told.record_one_shot("summary", provider="p", model="m")
    words = shell.ok("verify", session, "--requests")
    assert "✓ 1 request comes out again; beside them, no steps: 1" in words
    found = shell.json("verify", session, "--requests")["requests"]
    assert found == {"verified_count": 1, "skipped_count": 1, "mismatches": []}
    assert "requests" not in shell.json("verify", session)
