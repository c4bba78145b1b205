"""Foldlog, but a large write is several commits, and the process dies between two of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

from eventsourcing.persistence import StoredEvent
from foldlog.cli import main
from foldlog.persistence.sqlite.recorder import SQLiteSessionRecorder

LARGE = 100


class PiecemealRecorder(SQLiteSessionRecorder):
    """Commits the first half of many rows by itself, and gets no further."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Write all the rows, unless they are many."""
        if len(stored_events) < LARGE:
            return super().insert_events(stored_events, **kwargs)
        super().insert_events(stored_events[: len(stored_events) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return ()


if __name__ == "__main__":
    from foldlog.persistence.sqlite import recorder

    vars(recorder)["SQLiteSessionRecorder"] = PiecemealRecorder
    main()
