"""Large attachments in a bucket, or wherever else fsspec reaches.

A file is written under `incoming`, in parts, and copied to its name by the bucket itself: a copy is
whole or not there, and what the bucket has acknowledged is durable.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from secrets import token_hex
from typing import Any

from foldlog.persistence.errors import UnavailableError, s3_extra
from foldlog.persistence.object_files import (
    ABANDONED_AFTER_S,
    INCOMING,
    digest_of,
    folder_of,
    fresh_name,
)

AWAY = "the bucket of attachments is out of reach"
PART_BYTES = 8 * 1024 * 1024
# What the libraries behind fsspec call the time when a file was last written.
TIMES = ("LastModified", "mtime", "last_modified", "updated", "created")


class BucketFiles:
    """Files below a URL such as s3://bucket/prefix.

    Who may do so is up to the library's own environment: its credentials, its endpoint.
    """

    def __init__(self, url: str) -> None:
        with s3_extra():
            from fsspec.core import url_to_fs

            # No listing is remembered: other processes write, too.
            self._fs, root = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        self._root = root.rstrip("/")

    def begin(self) -> IncomingKey:
        """Begin a new file. Raises UnavailableError."""
        key = f"{self._root}/{INCOMING}/{token_hex(16)}"
        with _writing(key):
            file = self._fs.open(key, "wb", block_size=PART_BYTES, autocommit=False)
        return IncomingKey(self._fs, self._root, key, file)

    def open(self, name: str) -> OpenKey:
        """Open a file. Raises FileNotFoundError, or UnavailableError if the bucket is away."""
        key = f"{self._root}/{name}"
        with _reaching(key):
            try:
                return OpenKey(self._fs, key, int(self._fs.info(key)["size"]))
            except FileNotFoundError:
                if self._fs.exists(self._root.partition("/")[0] or "/"):
                    raise
        raise UnavailableError(f"{AWAY}: there is no {self._root}", AWAY)

    def remove(self, name: str) -> None:
        """Remove a file that no row names any more; one that is gone already is fine."""
        self._remove(f"{self._root}/{name}")

    def remove_abandoned(self, older_than_s: float = ABANDONED_AFTER_S) -> None:
        """Remove what uploads left behind whose process ended.

        Parts of a file that was never whole are no file: the bucket's own rules remove them.
        """
        with suppress(UnavailableError):
            for key in self._old(f"{self._root}/{INCOMING}", time.time() - older_than_s):
                self._remove(key)

    def old_names(self, tenant: str, before_s: float) -> Iterator[dict[str, bytes]]:
        """Yield files of a tenant with their digests, folder by folder, but for recent ones."""
        for folder in self._listed(f"{self._root}/{folder_of(tenant)}"):
            if folder["type"] == "directory":
                keys = self._old(folder["name"], before_s)
                names = [self._name_of(key) for key in keys]
                yield {name: d for name in names if (d := digest_of(name)) is not None}

    def close(self) -> None:
        """Let connections go."""
        close = getattr(self._fs, "close_session", None)
        if close is not None:
            close(self._fs.loop, self._fs.s3)

    def _old(self, folder: str, before_s: float) -> list[str]:
        files = [each for each in self._listed(folder) if each["type"] == "file"]
        return [each["name"] for each in files if self._written_s(each) < before_s]

    def _listed(self, folder: str) -> list[Mapping[str, Any]]:
        with suppress(FileNotFoundError), _reaching(folder):
            found: list[Mapping[str, Any]] = self._fs.ls(folder, detail=True)
            return found
        return []

    def _written_s(self, info: Mapping[str, Any]) -> float:
        known = [info[name] for name in TIMES if info.get(name) is not None]
        written: datetime | float = known[0] if known else self._fs.modified(info["name"])
        return written.timestamp() if isinstance(written, datetime) else float(written)

    def _name_of(self, key: str) -> str:
        return key.strip("/").removeprefix(self._root.strip("/")).strip("/")

    def _remove(self, key: str) -> None:
        with suppress(FileNotFoundError, UnavailableError), _reaching(key):
            self._fs.rm_file(key)


class IncomingKey:
    """A file that is being written, in parts of which one or two are in memory."""

    def __init__(self, fs: Any, root: str, key: str, file: Any) -> None:
        self._fs, self._root, self._key, self._file = fs, root, key, file
        self._is_whole = False

    def write(self, data: bytes) -> None:
        """Take the next bytes. Raises UnavailableError."""
        with _writing(self._key):
            self._file.write(data)

    def publish(self, tenant: str, sha256: bytes) -> str:
        """Make the file whole and give it a name. Raises UnavailableError."""
        name = fresh_name(tenant, sha256)
        with _writing(self._key):
            self._file.close()
            self._file.commit()
            self._is_whole = True
            self._fs.cp_file(self._key, f"{self._root}/{name}")
            self._fs.rm_file(self._key)
        return name

    def discard(self) -> None:
        """Forget what was written, unless it is published. What stays after all is abandoned."""
        with suppress(FileNotFoundError, UnavailableError), _reaching(self._key):
            if self._is_whole:
                self._fs.rm_file(self._key)
            else:
                self._file.discard()
                self._file.closed = True  # else it is finished when it is forgotten


class OpenKey:
    """A file that is being read, a range at a time."""

    def __init__(self, fs: Any, key: str, size_bytes: int) -> None:
        self._fs, self._key = fs, key
        self.size_bytes = size_bytes

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes of a range. Raises UnavailableError."""
        stop = min(offset + size, self.size_bytes)
        try:
            with _reaching(self._key):
                data: bytes = self._fs.cat_file(self._key, start=offset, end=stop)
                return data
        except FileNotFoundError:
            # It was there when it was opened: it is healed or collected, which who asks again sees.
            told = "an attachment was removed while it was read"
            raise UnavailableError(f"{told}: {self._key}", told) from None

    def close(self) -> None:
        """There is nothing to let go: each range is a request of its own."""


@contextmanager
def _reaching(key: str) -> Iterator[None]:
    """Raise UnavailableError for what fails inside, but for a file that is not there."""
    try:
        yield
    except (FileNotFoundError, UnavailableError):
        raise
    except Exception as error:  # each library behind fsspec has errors of its own
        raise UnavailableError(f"{AWAY}: {key}: {type(error).__name__}", AWAY) from error


@contextmanager
def _writing(key: str) -> Iterator[None]:
    """Raise UnavailableError for what fails inside: a bucket that is not there, too."""
    try:
        with _reaching(key):
            yield
    except FileNotFoundError as error:
        raise UnavailableError(f"{AWAY}: {key}: {error}", AWAY) from error
