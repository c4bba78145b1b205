"""Foldlog, but a commit that the database failed, or never answered, counts as done."""

from __future__ import annotations

from dataclasses import replace

from foldlog.application import application
from foldlog.application.committer import Commit, Committer
from foldlog.core.errors import FoldlogError

from tests.faults.unsafe.serving import serve_with


class HopefulCommitter(Committer):
    """Says that a commit is stored when the store was away."""

    def submit(self, commit: Commit) -> None:
        def on_failed(error: Exception) -> None:
            if isinstance(error, FoldlogError):
                commit.on_stored(0)
            else:
                commit.on_failed(error)

        super().submit(replace(commit, on_failed=on_failed))


if __name__ == "__main__":
    serve_with(application, "Committer", HopefulCommitter)
