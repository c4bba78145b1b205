"""Inputs and outputs that are full or closed: one line at most, and no traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _run(redirection: str) -> subprocess.CompletedProcess[str]:
    command = f"exec {sys.executable} -m foldlog --help {redirection}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


def test_a_full_output_is_told_in_one_line() -> None:
    done = _run(">/dev/full")
    assert done.returncode == 2
    assert done.stderr == "foldlog: No space left on device\n"


@pytest.mark.parametrize("redirection", [">&-", "<&-", "<&- >&-"])
def test_closed_streams_are_taken_for_empty_ones(redirection: str) -> None:
    done = _run(redirection)
    assert done.returncode == 0
    assert done.stderr == ""
