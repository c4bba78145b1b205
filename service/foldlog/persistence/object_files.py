"""The directory of large attachments. Several processes may share it.

A file is written under `incoming`, synced, and renamed to a name of its own that is never used
again; the row in the database that names it comes after. So a file is whole or unknown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256 as new_sha256
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from foldlog.persistence.errors import UnavailableError

INCOMING = "incoming"
ABANDONED_AFTER_S = 3_600.0
DIGEST_DIGITS = 64


class ObjectFiles:
    """Files by name, below one directory, which is made when it is first written to."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self) -> tuple[Path, BinaryIO]:
        """Open a new file for writing. It has no name yet."""
        folder = self._root / INCOMING
        path = folder / token_hex(16)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return path, path.open("xb")
        except OSError as error:
            raise _unwritable(folder, error) from error

    def publish(self, path: Path, file: BinaryIO, tenant: str, sha256: bytes) -> str:
        """Make a written file durable and give it a name, which is returned. Closes it."""
        digits = sha256.hex()
        folder = self._folder(tenant) / digits[:2]
        target = folder / f"{digits}-{token_hex(8)}"
        try:
            with file:
                file.flush()
                os.fsync(file.fileno())
            folder.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            for each in (folder, folder.parent, self._root):
                _sync(each)
        except OSError as error:
            raise _unwritable(folder, error) from error
        return str(target.relative_to(self._root))

    def open(self, name: str) -> BinaryIO:
        """Open a file. Raises FileNotFoundError, or UnavailableError if the directory is away."""
        try:
            return (self._root / name).open("rb")
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
            for folder in sorted(self._folder(tenant).iterdir()):
                names = (path.relative_to(self._root) for path in _old(folder, before_s))
                yield {str(n): d for n in names if (d := _digest_of(n)) is not None}

    def _folder(self, tenant: str) -> Path:
        # A tenant may have any name; not every name is a folder's.
        return self._root / new_sha256(tenant.encode()).hexdigest()[:32]


def _old(folder: Path, before_s: float) -> list[Path]:
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file() and entry.stat().st_mtime < before_s:
                    found.append(Path(entry.path))
    return found


def _digest_of(name: Path) -> bytes | None:
    try:
        digest = bytes.fromhex(name.name.partition("-")[0])
    except ValueError:
        return None
    return digest if len(digest) == DIGEST_DIGITS // 2 else None


def _sync(folder: Path) -> None:
    """Make renames in a folder durable (fsync(2): of a file, it does not cover its entry)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unwritable(folder: Path, error: OSError) -> UnavailableError:
    told = f"an attachment cannot be written: {error.strerror}"
    return UnavailableError(f"{told}: {folder}", told)
