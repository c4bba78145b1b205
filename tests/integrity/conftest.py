"""Served stores that an attacker can write to, and a user who has nothing but the command line."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.shell import Shell
from tests.integrity.attacker import Attacker
from tests.served import Served


@pytest.fixture(params=["sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """A store that can be reached from outside."""
    name: str = request.param
    return name


@pytest.fixture
def served(servers: Any, backend: str) -> Served:
    """A server that only attacks share: what is done to its rows stays."""
    found: Served = servers.attacked(backend)
    return found


@pytest.fixture
def user(served: Served) -> Shell:
    """The user's command line."""
    return Shell(served.address)


@pytest.fixture
def attacker(served: Served) -> Attacker:
    """The attacker on the same database."""
    return Attacker(served.database_url)


@pytest.fixture
def told(user: Shell) -> str:
    """The id of a session with six messages: seq n is version n + 2.

    It does not end the feed. Where rows at its very end go, SQLite gives their places to new ones,
    which the index believes to have seen: the store is not fit for other tests then.
    """
    session = fill(user)
    user.ok("create")
    return session


def fill(user: Shell, messages: int = 6) -> str:
    """Write a session and return its id."""
    session = user.ok("create", f"s-{uuid4().hex}", "--label", "a=1").strip()
    for number in range(messages):
        user.ok("append", session, f"message {number} of {session}", "--request-id", f"r{number}")
    assert user.json("verify", session)["intact"]
    return session


def found(user: Shell, session: str) -> list[tuple[int | None, str]]:
    """Return what `foldlog verify` finds, each as seq and description; it is to find something."""
    result = user.run("verify", session, "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert not document["intact"]
    return [(each["seq"], each["description"]) for each in document["faults"]]
