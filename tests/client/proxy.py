"""A way to a server that can be cut, so that a call's fate is known to the server alone."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Proxy:
    """Passes bytes between clients and a server."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._mute = False
        self.muted = threading.Event()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def mute(self) -> None:
        """Cut each connection at the next bytes from the server instead of passing them on."""
        self.muted.clear()
        self._mute = True

    def unmute(self) -> None:
        """Pass bytes from the server on again."""
        self._mute = False

    def cut(self) -> None:
        """Cut every connection. New ones are passed."""
        with self._lock:
            cut, self._sockets = self._sockets, []
        for each in cut:
            _close(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                with self._lock:
                    self._sockets += [near, far]
                threading.Thread(target=self._forth, args=(near, far), daemon=True).start()
                threading.Thread(target=self._back, args=(far, near), daemon=True).start()

    def _forth(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                far.sendall(data)
        _close(far)

    def _back(self, far: socket.socket, near: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                if self._mute:
                    self.muted.set()
                    break
                near.sendall(data)
        _close(near)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _close(self._listener)
        self.cut()


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
