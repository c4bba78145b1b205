"""Hints that rows were committed, passed between the threads of this process."""

from __future__ import annotations

from threading import Condition, local


class Hints:
    """Wakes waiting threads; a thread that comes late is woken by the hints it has not seen."""

    def __init__(self) -> None:
        self._given = 0
        self._changed = Condition()
        self._seen = local()

    def give(self) -> None:
        """Hint once more."""
        with self._changed:
            self._given += 1
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Wait until a hint comes that this thread has not seen, and tell whether one came."""
        seen = getattr(self._seen, "given", 0)
        with self._changed:
            came = self._changed.wait_for(lambda: self._given != seen, timeout_s)
            self._seen.given = self._given
        return came
