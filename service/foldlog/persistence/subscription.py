"""The package's subscription on our feed: woken by hints, and polling where they are lost."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread
from typing import Any

from eventsourcing.persistence import ListenNotifySubscription

from foldlog.persistence.recorder import SessionRecorder

POLL_S = 0.5


class SessionSubscription(ListenNotifySubscription[SessionRecorder]):
    """Yields the feed's rows as they are committed."""

    def __init__(
        self, recorder: SessionRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder, gt, topics)
        self._hint_thread = Thread(target=self._pass_hints_on)
        self._hint_thread.start()

    def _pass_hints_on(self) -> None:
        while not self._has_been_stopped:
            self._recorder.wait_for_hint(POLL_S)
            self._has_been_notified.set()

    def stop(self) -> None:
        """Stop the subscription."""
        super().stop()
        # Wakes the thread that passes hints on; for others it is a hint too many.
        self._recorder.notify()

    def __exit__(self, *args: object, **kwargs: Any) -> None:
        try:
            super().__exit__(*args, **kwargs)
        finally:
            self._hint_thread.join()
