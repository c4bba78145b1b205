"""A network between the service and its database that can stall, cut, delay, and lose answers."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Self

CHUNK_BYTES = 65_536
# In the message that has the service's prepared insert carried out, and in the insert itself.
WRITES = (b"foldlog_insert_", b"INSERT INTO foldlog_events")


class Loss(Enum):
    """What becomes of a write whose answer is lost: cut before it is sent, at once, or after."""

    UNSENT = "the database never gets it"
    UNAWAITED = "the database gets it, and the connection ends while it is being committed"
    UNHEARD = "the database commits it and answers"


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy: the client's end and the server's."""

    near: socket.socket
    far: socket.socket
    is_unheard: bool = False

    def close(self) -> None:
        """End both sides at once."""
        for each in (self.near, self.far):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for each in (self.near, self.far):
            each.close()


class Proxy:
    """Passes bytes between clients and one server, as a context. Faults take effect at once."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._links: set[Link] = set()
        self._lock = threading.Lock()
        self._passing = threading.Event()
        self._passing.set()
        self._loses: Callable[[], Loss | None] = lambda: None
        self.delay_s = 0.0
        self.lost = 0
        self.port: int = self._listener.getsockname()[1]

    def cut(self) -> None:
        """End every connection; new ones are passed."""
        with self._lock:
            links, self._links = self._links, set()
        for link in links:
            link.close()

    def stall(self) -> None:
        """Keep all bytes back: whoever connects or asks hears nothing, and no end either."""
        self._passing.clear()

    def resume(self) -> None:
        """Pass on what was kept back, and what comes."""
        self._passing.set()

    def lose(self, loses: Callable[[], Loss | None]) -> None:
        """Ask at each write what is to become of it, None for nothing out of the ordinary."""
        self._loses = loses

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        self._passing.wait()
        try:
            far = socket.create_connection(self._target)
        except OSError:
            near.close()
            return
        for each in (near, far):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(near, far)
        with self._lock:
            self._links.add(link)
        for run in (self._forth, self._back):
            threading.Thread(target=self._run, args=(run, link), daemon=True).start()

    def _run(self, carry: Callable[[Link], None], link: Link) -> None:
        with contextlib.suppress(OSError):
            carry(link)
        with self._lock:
            self._links.discard(link)
        link.close()

    def _forth(self, link: Link) -> None:
        while data := link.near.recv(CHUNK_BYTES):
            self._hold()
            loss = self._loses() if any(mark in data for mark in WRITES) else None
            if loss is not None:
                self.lost += 1
            if loss is Loss.UNSENT:
                return
            link.is_unheard = loss is Loss.UNHEARD
            link.far.sendall(data)
            if loss is Loss.UNAWAITED:
                return

    def _back(self, link: Link) -> None:
        while data := link.far.recv(CHUNK_BYTES):
            self._hold()
            if link.is_unheard:
                return
            link.near.sendall(data)

    def _hold(self) -> None:
        if self.delay_s:
            time.sleep(self.delay_s)
        self._passing.wait()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
