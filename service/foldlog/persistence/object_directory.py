"""Large attachments in a directory.

A file is written under `incoming`, synced, and renamed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from foldlog.persistence.errors import UnavailableError
from foldlog.persistence.object_files import (
    ABANDONED_AFTER_S,
    INCOMING,
    digest_of,
    folder_of,
    fresh_name,
)


class DirectoryFiles:
    """Files below one directory, which is made when it is first written to."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self) -> IncomingPath:
        """Begin a new file. Raises UnavailableError."""
        folder = self._root / INCOMING
        path = folder / token_hex(16)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return IncomingPath(self._root, path, path.open("xb"))
        except OSError as error:
            raise _unwritable(folder, error) from error

    def open(self, name: str) -> OpenPath:
        """Open a file. Raises FileNotFoundError, or UnavailableError if the directory is away."""
        try:
            return OpenPath((self._root / name).open("rb"))
        except FileNotFoundError:
            if self._root.is_dir():
                raise
            told = "the directory of attachments is not there"
            raise UnavailableError(f"{told}: {self._root}", told) from None
        except OSError as error:
            told = f"an attachment cannot be read: {error.strerror}"
            raise UnavailableError(f"{told}: {name}", told) from error

    def remove(self, name: str) -> None:
        """Remove a file that no row names any more; one that is gone already is fine."""
        with suppress(OSError):
            (self._root / name).unlink()

    def remove_abandoned(self, older_than_s: float = ABANDONED_AFTER_S) -> None:
        """Remove what uploads left behind whose process ended."""
        for path in _old(self._root / INCOMING, time.time() - older_than_s):
            with suppress(OSError):
                path.unlink()

    def old_names(self, tenant: str, before_s: float) -> Iterator[dict[str, bytes]]:
        """Yield files of a tenant with their digests, folder by folder, but for recent ones."""
        with suppress(FileNotFoundError):
            for folder in sorted((self._root / folder_of(tenant)).iterdir()):
                names = (str(p.relative_to(self._root)) for p in _old(folder, before_s))
                yield {name: d for name in names if (d := digest_of(name)) is not None}

    def close(self) -> None:
        """There is nothing to let go."""


class IncomingPath:
    """A file that is being written."""

    def __init__(self, root: Path, path: Path, file: BinaryIO) -> None:
        self._root, self._path, self._file = root, path, file

    def write(self, data: bytes) -> None:
        """Take the next bytes. Raises UnavailableError."""
        try:
            self._file.write(data)
        except OSError as error:
            raise _unwritable(self._path, error) from error

    def publish(self, tenant: str, sha256: bytes) -> str:
        """Make the file durable and give it a name. Raises UnavailableError."""
        name = fresh_name(tenant, sha256)
        target = self._root / name
        folder = target.parent
        try:
            with self._file as file:
                file.flush()
                os.fsync(file.fileno())
            folder.mkdir(parents=True, exist_ok=True)
            self._path.rename(target)
            for each in (folder, folder.parent, self._root):
                _sync(each)
        except OSError as error:
            raise _unwritable(folder, error) from error
        return name

    def discard(self) -> None:
        """Forget what was written, unless it is published."""
        with suppress(OSError):
            self._file.close()
        self._path.unlink(missing_ok=True)


class OpenPath:
    """A file that is being read. It stays readable when it is removed meanwhile."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size_bytes = os.fstat(file.fileno()).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes of a range. Raises OSError: what a failing disk reports is lost."""
        self._file.seek(offset)
        return self._file.read(size)

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def _old(folder: Path, before_s: float) -> list[Path]:
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file() and entry.stat().st_mtime < before_s:
                    found.append(Path(entry.path))
    return found


def _sync(folder: Path) -> None:
    """Make renames in a folder durable (fsync(2): of a file, it does not cover its entry)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> UnavailableError:
    told = f"an attachment cannot be written: {error.strerror}"
    return UnavailableError(f"{told}: {path}", told)
