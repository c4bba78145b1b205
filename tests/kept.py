"""Where large attachments are kept, seen past the service: a directory, or a bucket.

The bucket is one of a server process that speaks S3.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

START_DEADLINE_S = 120.0
KEYS = {
    "AWS_ACCESS_KEY_ID": "tests",
    "AWS_SECRET_ACCESS_KEY": "tests",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class Kept(Protocol):
    """Files of attachments. `url` and `environment` are what the service is to be given."""

    url: str
    environment: dict[str, str]

    def names(self) -> list[str]:
        """Return the names of its files."""

    def under_way(self) -> int:
        """Return how many uploads are being written."""

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""

    def write(self, name: str, data: bytes) -> None:
        """Put bytes in a file's place."""

    def remove(self, name: str) -> None:
        """Remove a file."""


class Directory:
    """A directory."""

    def __init__(self, root: Path) -> None:
        self.url = str(root)
        self.environment: dict[str, str] = {}
        self._root = root

    def _files(self) -> list[Path]:
        return [path for path in self._root.rglob("*") if path.is_file()]

    def names(self) -> list[str]:
        """Return the names of its files."""
        names = (str(path.relative_to(self._root)) for path in self._files())
        return sorted(name for name in names if not name.startswith("incoming/"))

    def under_way(self) -> int:
        """Return how many uploads are being written."""
        return len(self._files()) - len(self.names())

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        return (self._root / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put bytes in a file's place."""
        (self._root / name).write_bytes(data)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._root / name).unlink()


class Bucket:
    """A new bucket of a server."""

    def __init__(self, endpoint: str) -> None:
        import boto3

        name = f"b-{uuid4().hex}"
        self.url = f"s3://{name}/attachments"
        self.environment = {"AWS_ENDPOINT_URL": endpoint, **KEYS}
        self._name = name
        self._s3: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            region_name=KEYS["AWS_DEFAULT_REGION"],
        )
        self._s3.create_bucket(Bucket=name)

    def names(self) -> list[str]:
        """Return the keys of its objects."""
        listed = self._s3.list_objects_v2(Bucket=self._name).get("Contents", [])
        return sorted(each["Key"] for each in listed)

    def under_way(self) -> int:
        """Return how many uploads are being written, of more than one part."""
        return len(self._s3.list_multipart_uploads(Bucket=self._name).get("Uploads", []))

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""
        data: bytes = self._s3.get_object(Bucket=self._name, Key=name)["Body"].read()
        return data

    def write(self, name: str, data: bytes) -> None:
        """Put bytes in an object's place."""
        self._s3.put_object(Bucket=self._name, Key=name, Body=data)

    def remove(self, name: str) -> None:
        """Remove an object."""
        self._s3.delete_object(Bucket=self._name, Key=name)


@contextmanager
def bucket_server(directory: Path) -> Iterator[str]:
    """Run a server and give its address."""
    with closing(socket.socket()) as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = chosen.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (directory / "bucket.log").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            _wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the server of the bucket does not answer")
