"""Foldlog, but bytes that do not decode are left to gRPC."""

from __future__ import annotations

from collections.abc import Callable

from foldlog.server import handlers
from google.protobuf.message import Message

from tests.faults.unsafe.serving import serve_with


def trusting(kind: type[Message], most_fields: int) -> Callable[[bytes], Message]:
    """Return a deserialiser that raises."""
    return kind.FromString


if __name__ == "__main__":
    serve_with(handlers, "decoder", trusting)
