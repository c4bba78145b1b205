"""`foldlog attach`: files in and out, and what nothing names."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.shell import Shell

PICTURE = b"\x89PNG\r\n" * 60_000
DIGITS = sha256(PICTURE).hexdigest()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A file with bytes."""
    path = tmp_path / "a.png"
    path.write_bytes(PICTURE)
    return path


def test_a_file_goes_in_and_comes_out(shell: Shell, picture: Path, tmp_path: Path) -> None:
    assert shell.ok("attach", "put", str(picture), "--type", "image/png").strip() == DIGITS
    about = shell.json("attach", "put", str(picture))
    assert about == {"sha256": DIGITS, "size_bytes": len(PICTURE), "existed": True}
    out = tmp_path / "out"
    shell.ok("attach", "get", DIGITS, str(out))
    assert out.read_bytes() == PICTURE
    assert shell.run("attach", "get", DIGITS, str(out)).exit_code == 2
    shell.ok("attach", "get", DIGITS, str(out), "--force", "--offset", "1", "--length", "3")
    assert out.read_bytes() == b"PNG"


def test_what_comes_from_a_pipe_is_stored(shell: Shell) -> None:
    assert shell.ok("attach", "put", "-", stdin=b"piped").strip() == sha256(b"piped").hexdigest()


@pytest.mark.parametrize("digits", ["xyz", "07", "../../etc/passwd"])
def test_what_is_no_digest_is_refused(shell: Shell, digits: str) -> None:
    assert shell.run("attach", "get", digits).exit_code == 2


def test_what_is_not_stored_is_said_in_one_line(shell: Shell) -> None:
    ended = shell.run("attach", "get", "07" * 32)
    assert ended.exit_code == 2
    assert "foldlog attach put FILE" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_collection_says_what_it_does(shell: Shell, picture: Path) -> None:
    shell.ok("attach", "put", str(picture))
    assert shell.ok("attach", "collect", "--dry-run").startswith("would delete 0 of ")
    assert shell.json("attach", "collect")["collected_count"] == 0


def test_options_before_the_command_reach_it(shell: Shell) -> None:
    assert '"examined_count"' in shell.ok("--json", "attach", "collect", "--dry-run")
