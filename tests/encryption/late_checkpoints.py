"""Foldlog, with checkpoints that are written only once their session is erased.

As a slow process would write them, which began before the erasure.
"""

from __future__ import annotations

import time

from foldlog.application import history, tenant
from foldlog.application.domain import Session
from foldlog.application.fold import Fold

from tests.faults.unsafe.serving import serve_with

DEADLINE_S = 60.0


class LateHistory(history.History):
    """Waits until nothing of a session is under way any more."""

    def save_checkpoint(self, head: Session, fold: Fold) -> None:
        """Write a checkpoint after all that an erasure does."""
        deadline = time.monotonic() + DEADLINE_S
        while not self._is_purged(head) and time.monotonic() < deadline:
            time.sleep(0.01)
        super().save_checkpoint(head, fold)

    def _is_purged(self, head: Session) -> bool:
        (newest,) = self._store.recorder.select_events(head.id, desc=True, limit=1)
        (first,) = self._store.recorder.select_events(head.id, limit=1)
        is_stripped = self.reader.anew().decode(first, -1).envelope.dropped
        pending = {each.session_id for each in self._store.erasures.pending(100)}
        is_done = newest.topic == Session.Erased.TOPIC and is_stripped
        return is_done and head.session_id not in pending


if __name__ == "__main__":
    serve_with(tenant, "History", LateHistory)
