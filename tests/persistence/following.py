"""Readers that follow the feed: as the service does, and without what keeps it whole."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, cast
from uuid import UUID

from foldlog.persistence import queries
from foldlog.persistence.recorder import SessionRecorder

Changes = list[tuple[int, UUID, int]]
Select = Callable[[int], Changes]


def with_watermark(recorder: SessionRecorder) -> Select:
    """Read as the service does."""
    return lambda after: recorder.select_changes(after, 1_000)


def without_watermark(recorder: SessionRecorder) -> Select:
    """Read whatever is visible, in the order of ids: the negative control."""
    datastore = cast("Any", recorder).datastore
    return lambda after: cast("Changes", datastore.rows(queries.changes(after, None, 1_000)))


class Tail:
    """A reader that follows the feed until told that nothing more is written."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self.seen: list[int] = []

    def follow(self, done: Event) -> None:
        """Read on until a page is empty after `done`."""
        while True:
            finished = done.is_set()
            page = self._select(self.seen[-1] if self.seen else 0)
            self.seen += [place for place, _, _ in page]
            if finished and not page:
                return
