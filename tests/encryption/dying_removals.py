"""Foldlog, which dies when it is about to remove the file of an attachment."""

from __future__ import annotations

import os

from foldlog.persistence.objects import ObjectStore

from tests.faults.unsafe.serving import serve_with


def die(_: ObjectStore, file: str | None) -> None:
    """End the process where there is a file: its row is gone by then."""
    if file is not None:
        os._exit(1)


if __name__ == "__main__":
    serve_with(ObjectStore, "remove", die)
