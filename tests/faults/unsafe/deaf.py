"""Foldlog, but no hint of another process ever arrives: each is lost."""

from __future__ import annotations

import time

from foldlog.cli import main
from foldlog.persistence.postgres.recorder import PostgresSessionRecorder


class DeafRecorder(PostgresSessionRecorder):
    """Hears nothing."""

    def wait_for_hint(self, timeout_s: float) -> bool:
        """Wait in vain."""
        time.sleep(timeout_s)
        return False


if __name__ == "__main__":
    from foldlog.persistence.postgres import recorder

    vars(recorder)["PostgresSessionRecorder"] = DeafRecorder
    main()
