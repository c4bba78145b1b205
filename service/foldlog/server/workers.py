"""Several server processes on one port: begun, watched over, and ended together.

The kernel spreads connections over those that listen on a port together (SO_REUSEPORT). Each
process is a whole server; what keeps them in agreement is the database.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread

from foldlog import observability
from foldlog.settings import Settings, environment_of, split_address

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
SETTLED_S = 60.0  # a worker that served so long is begun again after the first pause
READY = b"ready\n"
LINE = "FOLDLOG_WORKER_LINE"  # to a worker: the file whose other end its supervisor holds
ORPHANED = 70


class WorkerSettingsError(ValueError):
    """The settings do not go with several processes."""


class WorkerFailedError(Exception):
    """A worker ended before it served. It has said why."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"a worker ended with {exit_code} before it served")
        self.exit_code = exit_code


def require_shareable(settings: Settings) -> None:
    """Raise WorkerSettingsError where several processes cannot serve one database."""
    if settings.workers > 1 and settings.database_url.startswith("sqlite"):
        raise WorkerSettingsError(
            f"{settings.workers} workers need PostgreSQL: one process alone writes to a SQLite"
            " file. Set FOLDLOG_DATABASE_URL to a postgresql:// address, or FOLDLOG_WORKERS to 1"
        )


def supervise(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve with several processes until SIGTERM or SIGINT.

    `ready` is called with the address once all of them serve. Raises OSError if the address cannot
    be listened on, and WorkerFailedError.
    """
    observability.setup(replace(settings, metrics_listen=""))  # each worker has its own
    with _Port(settings.listen) as port:
        asyncio.run(_Workers(replace(settings, listen=port.address), ready).run())


class _Port:
    """A port that is kept for processes to share. A context manager."""

    def __init__(self, listen: str) -> None:
        host, port = split_address(listen)
        family, kind, _, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as alone:
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                alone.bind(place)  # the kernel would let us share it with anybody of this user
            except OSError as error:
                raise OSError(f"cannot listen on {listen}") from error
            place = (host, alone.getsockname()[1])
        self._socket = socket.socket(family, kind)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._socket.bind(place)
        self.address = f"{listen.rpartition(':')[0]}:{place[1]}"

    def __enter__(self) -> _Port:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def supervised() -> Callable[[str], None] | None:
    """Return what tells the supervisor of this process, if it has one, that it serves.

    From now on the process ends at once when its supervisor does, however that goes.
    """
    if LINE not in os.environ:
        return None
    line = int(os.environ.pop(LINE))
    os.set_inheritable(line, False)
    Thread(target=_end_with, args=(line,), daemon=True).start()

    def ready(_: str) -> None:
        os.write(line, READY)

    return ready


def _end_with(line: int) -> None:
    with suppress(OSError):
        os.read(line, 1)
    os._exit(ORPHANED)


@dataclass(slots=True)
class _Worker:
    """A process, and the end of its line that we hold: closed, it ends the process."""

    process: asyncio.subprocess.Process
    line: socket.socket
    began_s: float

    async def ended(self) -> int:
        """Wait for its end and return its exit code."""
        code = await self.process.wait()
        self.line.close()
        return code

    def stop(self) -> None:
        """Ask it to let its calls end, and to end."""
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)


class _Workers:
    """The workers of one service."""

    def __init__(self, settings: Settings, ready: Callable[[str], None]) -> None:
        self._settings = settings
        self._ready = ready
        self._stopping = asyncio.Event()
        self._running: dict[int, _Worker] = {}

    async def run(self) -> None:
        """Begin all, watch over them, and end them."""
        loop = asyncio.get_running_loop()
        for signal_ in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_, self._stop)
        keeping: list[asyncio.Task[None]] = []
        try:
            # One first: what is wrong with the settings or the database is said once.
            await self._begin(0)
            await asyncio.gather(*map(self._begin, range(1, self._settings.workers)))
            keeping = [asyncio.create_task(self._keep(number)) for number in self._running]
            if not self._stopping.is_set():
                observability.log("workers.started", workers=len(keeping))
                self._ready(self._settings.listen)
            await asyncio.gather(*keeping)
        except WorkerFailedError:
            if not self._stopping.is_set():
                raise
        finally:
            self._stop()
            await asyncio.gather(*[worker.ended() for worker in self._running.values()])

    def _stop(self) -> None:
        self._stopping.set()
        for worker in self._running.values():
            worker.stop()

    async def _begin(self, number: int) -> None:
        """Begin a worker and wait until it serves. Raises WorkerFailedError."""
        if self._stopping.is_set():
            raise WorkerFailedError(0)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "foldlog", "serve"),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                env={**self._environment(number), LINE: str(theirs.fileno())},
            )
        loop = asyncio.get_running_loop()
        worker = self._running[number] = _Worker(process, ours, loop.time())
        if self._stopping.is_set():
            worker.stop()
        said = b""
        with suppress(ConnectionError):
            while piece := await loop.sock_recv(ours, len(READY)):
                said += piece
                if said == READY:
                    return
        raise WorkerFailedError(await self._running.pop(number).ended())

    def _environment(self, number: int) -> Mapping[str, str]:
        settings = self._settings
        own = replace(settings, address_file="", metrics_listen=self._metrics_listen(number))
        return os.environ | environment_of(own)

    def _metrics_listen(self, number: int) -> str:
        """Return the address of a worker's own metrics: the ports follow each other."""
        address = self._settings.metrics_listen
        if not address or not split_address(address)[1]:
            return address
        host, _, port = address.rpartition(":")
        return f"{host}:{int(port) + number}"

    async def _keep(self, number: int) -> None:
        """Begin a worker again whenever it ends, until all are to end."""
        loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
        while True:
            worker = self._running.get(number)
            if worker is not None:
                code = await worker.ended()
                if self._stopping.is_set():
                    return
                pid, served_s = worker.process.pid, loop.time() - worker.began_s
                observability.log("worker.ended", "error", worker=number, pid=pid, exit_code=code)
                pause_s = FIRST_PAUSE_S if served_s >= SETTLED_S else pause_s
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._stopping.wait()
                    return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            with suppress(WorkerFailedError):
                await self._begin(number)
                observability.log("worker.begun_again", worker=number)
