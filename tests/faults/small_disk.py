"""A disk of a few megabytes, that fills up and that becomes read-only."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MIB = 1024 * 1024


class SmallDisk:
    """A file system of its own in memory, mounted on a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Take all the space there is."""
        with self._ballast.open("ab", buffering=0) as ballast:
            for size in (MIB, 4096, 1):
                _write_all(ballast.fileno(), bytes(size))

    def free(self) -> None:
        """Give the space back."""
        self._ballast.unlink()

    def set_read_only(self, read_only: bool) -> None:
        """Let nobody write, or everybody again. Files open for writing make it fail."""
        mode = "ro" if read_only else "rw"
        subprocess.run(["mount", "-o", f"remount,{mode}", self.folder], check=True)


def _write_all(file: int, block: bytes) -> None:
    try:
        while True:
            os.write(file, block)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@contextmanager
def small_disk(folder: Path, size_bytes: int = 64 * MIB) -> Iterator[SmallDisk]:
    """Lend a disk. Skips the test where none can be mounted: that needs root."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "foldlog-test", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted: that needs root")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
