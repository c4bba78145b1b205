"""Foldlog, but a write is answered before it is written."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from foldlog.application import application
from foldlog.application.committer import Commit, Committer

from tests.faults.unsafe.serving import serve_with


class HastyCommitter(Committer):
    """Says that a commit is stored, then stores it."""

    def submit(self, commit: Commit) -> None:
        asyncio.get_running_loop().call_soon(commit.on_stored, 0)
        super().submit(replace(commit, on_stored=lambda _: None))


if __name__ == "__main__":
    serve_with(application, "Committer", HastyCommitter)
