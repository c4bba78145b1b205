"""Hints between processes: NOTIFY after commits, never in them, and LISTEN on a connection apart.

In a write NOTIFY would take a lock of the whole server until the commit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic

import psycopg
from eventsourcing.persistence import PersistenceError

from foldlog.persistence.hints import Hints
from foldlog.persistence.postgres.bounded import BoundedConnection

CHANNEL = "foldlog"
SEND_EVERY_S = 0.05
LINGER_S = 10.0  # for which a connection is kept that nobody waits at
LISTEN_SLICE_S = 0.5
RECONNECT_S = 1.0


class PostgresHints(Hints):
    """Sends at most one hint per 50 ms, and listens on a direct connection, made again if lost.

    It listens while somebody waits, and passes at most one hint per 50 ms on as well: with several
    processes each would be woken by every other one.
    """

    def __init__(self, conninfo: str, execute: Callable[[str], None]) -> None:
        super().__init__()
        self._conninfo = conninfo
        self._execute = execute
        self._due = Event()
        self._closing = Event()
        self._wanted_until_s = 0.0
        self._starting = Lock()
        self._threads: dict[str, Thread] = {}

    def notify(self) -> None:
        """Hint to this process at once, and to the others soon."""
        self.give()
        self._due.set()
        self._start("sender", self._send)

    def wait(self, timeout_s: float) -> bool:
        self._wanted_until_s = monotonic() + timeout_s + LINGER_S
        self._start("listener", self._listen)
        return super().wait(timeout_s)

    def close(self) -> None:
        """Stop both threads."""
        self._closing.set()
        self._due.set()
        with self._starting:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join()

    def _start(self, name: str, run: Callable[[], None]) -> None:
        if name in self._threads:
            return
        with self._starting:
            if name not in self._threads and not self._closing.is_set():
                thread = Thread(target=run, name=f"foldlog-hint-{name}", daemon=True)
                self._threads[name] = thread
                thread.start()

    def _send(self) -> None:
        while True:
            self._due.wait()
            if self._closing.is_set():
                return
            self._due.clear()
            # Best effort: readers poll as well.
            with suppress(PersistenceError):
                self._execute(f"NOTIFY {CHANNEL}")
            self._closing.wait(SEND_EVERY_S)

    def _listen(self) -> None:
        while self._is_wanted():
            with suppress(psycopg.Error):
                self._pass_on()
            if self._is_wanted():
                self._closing.wait(RECONNECT_S)
        with self._starting:
            # Who begins to wait just now starts another one at the next wait.
            del self._threads["listener"]

    def _is_wanted(self) -> bool:
        return not self._closing.is_set() and monotonic() < self._wanted_until_s

    def _pass_on(self) -> None:
        with BoundedConnection.connect(self._conninfo, autocommit=True) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            # Something may have been hinted while nobody listened.
            self.give()
            while self._is_wanted():
                if [*connection.notifies(timeout=LISTEN_SLICE_S, stop_after=1)]:
                    self.give()
                    self._closing.wait(SEND_EVERY_S)
