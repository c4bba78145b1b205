"""The server's memory stays constant whatever an attachment's size.

FOLDLOG_TEST_ATTACHMENT_MIB sets the size: 1024 for what is promised, less where time is short.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from foldlog import Client, Session, user

from tests.kept import Kept
from tests.served import Served

MIB = 1024 * 1024
SIZE_MIB = int(os.environ.get("FOLDLOG_TEST_ATTACHMENT_MIB", "160"))
GROWTH_MIB = 64


class Noise(io.RawIOBase):
    """A file of bytes that do not compress, made as they are read."""

    def __init__(self, size_bytes: int) -> None:
        self._left = size_bytes
        self._blocks = [random.Random(seed).randbytes(64 * 1024) for seed in range(8)]
        self._number = 0
        self.digest = sha256()

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        block = self._blocks[self._number % len(self._blocks)]
        self._number += 1
        data = (self._number.to_bytes(8) + block[8:])[: min(size, self._left)]
        self._left -= len(data)
        self.digest.update(data)
        return data


class Sink(io.RawIOBase):
    """A file that keeps only the digest of what is written to it."""

    def __init__(self) -> None:
        self.digest = sha256()

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.digest.update(data)
        return len(data)

    def seekable(self) -> bool:
        return False


def memory_mib(served: Served, field: str) -> float:
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    (line,) = (each for each in status.splitlines() if each.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


@pytest.fixture(params=["sqlite-file", "bucket"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def served(serve: Callable[..., Served], backend: str, kept: Kept) -> Served:
    return serve(backend, FOLDLOG_OBJECT_DIRECTORY=kept.url, **kept.environment)


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.address) as client:
        # More than a part of a multipart upload: what that takes is there from now on.
        client.read_attachment(client.put_attachment(b"warm" * 5 * MIB).sha256)
        yield client


def test_a_large_attachment_goes_in_and_out_in_constant_memory(
    served: Served, client: Client
) -> None:
    before = memory_mib(served, "VmRSS")
    source, sink, file = Noise(SIZE_MIB * MIB), Sink(), Sink()
    stored = client.put_attachment(source)  # type: ignore[arg-type]
    assert stored.size_bytes == SIZE_MIB * MIB
    assert stored.sha256 == source.digest.digest()
    client.get_attachment(stored.sha256, sink)  # type: ignore[arg-type]
    assert sink.digest.digest() == stored.sha256
    session: Session = client.create()
    session.append(user([stored.part("a/b")]))
    session.export(file, with_attachments=True)  # type: ignore[arg-type]
    assert memory_mib(served, "VmHWM") - before < GROWTH_MIB
