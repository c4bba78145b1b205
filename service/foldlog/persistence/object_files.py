"""Where large attachments are kept: files by name, in a directory or in a bucket.

A file gets a name of its own, never used again, once it is durable; the row in the database that
names it comes after. So a file is whole or unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256 as new_sha256
from pathlib import PurePosixPath
from secrets import token_hex
from typing import Protocol

INCOMING = "incoming"
ABANDONED_AFTER_S = 3_600.0
DIGEST_BYTES = 32


class IncomingFile(Protocol):
    """A file that is being written. It has no name yet."""

    def write(self, data: bytes) -> None:
        """Take the next bytes. Raises UnavailableError."""

    def publish(self, tenant: str, sha256: bytes) -> str:
        """Make the file durable and give it a name, which is returned. Raises UnavailableError."""

    def discard(self) -> None:
        """Forget what was written, unless it is published."""


class OpenFile(Protocol):
    """A file that is being read."""

    size_bytes: int

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes of a range, fewer at the end.

        Raises OSError for bytes that are lost, UnavailableError if they may be read later.
        """

    def close(self) -> None:
        """Let the file go."""


class ObjectFiles(Protocol):
    """Files by name. Several processes may share them. Blocking; any thread may call it."""

    def begin(self) -> IncomingFile:
        """Begin a new file. Raises UnavailableError."""

    def open(self, name: str) -> OpenFile:
        """Open a file. Raises FileNotFoundError, or UnavailableError if all are out of reach."""

    def remove(self, name: str) -> None:
        """Remove a file that no row names any more; one that is gone already is fine."""

    def remove_abandoned(self, older_than_s: float = ABANDONED_AFTER_S) -> None:
        """Remove what uploads left behind whose process ended."""

    def old_names(self, tenant: str, before_s: float) -> Iterator[dict[str, bytes]]:
        """Yield files of a tenant with their digests, folder by folder, but for recent ones."""

    def close(self) -> None:
        """Let connections go."""


def folder_of(tenant: str) -> str:
    """Return the folder of a tenant, who may have any name; not every name is a folder's."""
    return new_sha256(tenant.encode()).hexdigest()[:32]


def fresh_name(tenant: str, sha256: bytes) -> str:
    """Return a name for a file that no file had before."""
    digits = sha256.hex()
    return f"{folder_of(tenant)}/{digits[:2]}/{digits}-{token_hex(8)}"


def digest_of(name: str) -> bytes | None:
    """Return the digest that a file's name begins with; None if it is no attachment's."""
    try:
        digest = bytes.fromhex(PurePosixPath(name).name.partition("-")[0])
    except ValueError:
        return None
    return digest if len(digest) == DIGEST_BYTES else None
