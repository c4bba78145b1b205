"""A command line in this process, as a test uses it: what it printed, and how it ended."""

from __future__ import annotations

import json
from typing import Any

from foldlog.cli.app import app
from typer.testing import CliRunner, Result


class Shell:
    """Runs `foldlog` against one address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._runner = CliRunner()

    def run(self, *arguments: str, stdin: str | bytes | None = None, **variables: str) -> Result:
        """Run a command line and return its result, whatever it is."""
        environment = {"FOLDLOG_ADDRESS": self.address, **variables}
        return self._runner.invoke(app, list(arguments), input=stdin, env=environment)

    def ok(self, *arguments: str, stdin: str | bytes | None = None) -> str:
        """Run a command line that is to succeed and return what it printed to stdout."""
        result = self.run(*arguments, stdin=stdin)
        assert result.exit_code == 0, f"{result.output} {result.exception!r}"
        return result.stdout

    def json(self, *arguments: str) -> Any:
        """Run a command line with --json and return the document."""
        return json.loads(self.ok(*arguments, "--json"))

    def json_lines(self, *arguments: str) -> list[Any]:
        """Run a command line with --json and return the documents."""
        return [json.loads(line) for line in self.ok(*arguments, "--json").splitlines()]
