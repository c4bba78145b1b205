"""What the documents show is what happens: examples and commands run, links lead somewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.documents import ROOT, Example, commands, documents, examples, links
from tests.served import Served

README = ROOT / "README.md"
WITH_EXAMPLES = [ROOT / "docs" / name for name in ("tutorial.md",)] + [
    ROOT / "docs" / "how-to" / f"{name}.md"
    for name in ("attachments", "cache", "check", "compact", "converters", "crash")
]
# What stays up (it is started by the tests themselves), or is done on machines of one's own.
NOT_RUN = (
    *("foldlog serve", "pip install", "foldlog migrate --database-url postgresql://"),
    "foldlog keys create --role writer --database-url postgresql://",
)


def name_of(document: Path) -> str:
    """Return a document's path in the repository."""
    return str(document.relative_to(ROOT))


def environment(served: Served) -> dict[str, str]:
    """Return the environment of somebody who has the programs and the server."""
    return os.environ | {
        "FOLDLOG_ADDRESS": served.address,
        "PYTHONPATH": str(ROOT / "service"),
        "PYTHONWARNINGS": "error",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def run(served: Served, *command: str) -> str:
    """Run a command and return what it wrote. Fails the test if it fails."""
    done = subprocess.run(
        command, env=environment(served), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def require_output(served: Served, example: Example) -> None:
    """Run an example and hold its output to what the document says."""
    assert run(served, sys.executable, "-c", example.code) == example.output


def run_commands(served: Served, document: Path) -> None:
    """Run the document's commands, but those that stay up, and make's, which are only looked up."""
    for command in commands(document):
        if command.startswith("make "):
            run(served, "make", "--dry-run", *command.split()[1:])
        elif not command.startswith(NOT_RUN):
            run(served, *command.split())


def test_the_readmes_example_and_commands_do_what_it_says(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file")
    (example,) = examples(README)
    require_output(served, example)
    run_commands(served, README)


def test_the_readmes_example_is_short() -> None:
    (example,) = examples(README)
    assert len([line for line in example.code.splitlines() if line]) <= 15


@pytest.mark.parametrize("document", WITH_EXAMPLES, ids=name_of)
def test_a_documents_examples_do_what_it_says(serve: Callable[..., Served], document: Path) -> None:
    served = serve("sqlite-file")
    assert examples(document)
    for example in examples(document):
        require_output(served, example)
    run_commands(served, document)


def test_the_tutorials_session_survives_the_kill_it_asks_for(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file")
    before, after = examples(WITH_EXAMPLES[0])[:3], examples(WITH_EXAMPLES[0])[3:]
    for example in before:
        require_output(served, example)
    served.restart("kill9")
    for example in after:
        require_output(served, example)


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_every_link_leads_somewhere(document: Path) -> None:
    missing = [link for link in links(document) if not (document.parent / link).exists()]
    assert missing == []
