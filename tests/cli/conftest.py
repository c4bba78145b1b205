"""A shell against a served process."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.cli.shell import Shell
from tests.conftest import Servers


@pytest.fixture
def shell(servers: Servers) -> Shell:
    """A shell of a running service."""
    return Shell(servers.shared("sqlite-memory").address)


@pytest.fixture
def session(shell: Shell) -> str:
    """The id of a new session."""
    return shell.ok("create", f"s-{uuid4().hex}").strip()
