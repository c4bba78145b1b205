"""A few threads for what would hold up the loop, and the store's exceptions as ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from eventsourcing.persistence import IntegrityError
from google.protobuf.message import DecodeError

from foldlog.core import errors
from foldlog.core.errors import FoldlogError, OverloadedError, StoreUnavailableError
from foldlog.persistence.errors import (
    HeldError,
    KeyDamagedError,
    MasterKeyMissingError,
    PoolExhausted,
    StoreDamagedError,
    UnansweredError,
    is_unavailable,
)

P = ParamSpec("P")
T = TypeVar("T")
WORKER_THREADS = 2
# Pure work over this weight leaves the loop. What a byte costs differs: this many of them, decoded,
# judged and digested, take under a millisecond as text and about ten as tiny parts or numbers.
LIGHT_BYTES = 32 * 1024
HEAVY_BYTES = LIGHT_BYTES + 1  # what work weighs that is not measured
EVENT_BYTES = 300  # what an event weighs beside its body
ENTRY_BYTES = 3  # what an entry of a surface weighs that is walked, copied or digested


@dataclass(slots=True)
class _Work:
    """A function for a thread, and what is told on the loop once it ended."""

    loop: asyncio.AbstractEventLoop
    function: Callable[[], Any]
    ended: Callable[[Any, BaseException | None], None]

    def do(self) -> None:
        """Call the function, on a thread."""
        value, error = None, None
        try:
            value = self.function()
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(self.ended, value, error)


class Readers:
    """A bounded pool of threads. What they raise is ours, or a uniqueness error, or a fault.

    With `wait_s`, a caller that no thread serves in that time gets OverloadedError. A hand-over
    costs a quarter of what it does through an executor's futures, and each commit takes one.
    """

    def __init__(self, threads: int, name: str, wait_s: float | None = None) -> None:
        self._most = threads
        self._name = name
        self._free = asyncio.Semaphore(threads)
        self._wait_s = wait_s
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._busy = 0

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function on a thread and return its value."""
        if self._free.locked():
            await self._admitted()
        else:
            await self._free.acquire()
        loop = asyncio.get_running_loop()
        # Whoever goes away leaves the thread at work.
        told: asyncio.Future[T] = loop.create_future()

        def ended(value: T, error: BaseException | None) -> None:
            self._busy -= 1
            self._free.release()
            if told.done():
                return
            if error is None:
                told.set_result(value)
            else:
                told.set_exception(error)

        self._busy += 1
        if self._busy > len(self._threads):
            self._start()
        self._waiting.put(_Work(loop, partial(function, *args, **kwargs), ended))
        try:
            return await told
        except (FoldlogError, IntegrityError):
            raise
        except Exception as error:
            raise translated(error) from error

    async def _admitted(self) -> None:
        """Wait for a thread."""
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise OverloadedError(cause="no thread to the database became free in time") from None

    def _start(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            work.do()

    def close(self) -> None:
        """Let running work end and stop."""
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()


class Workers:
    """Threads for pure work, so that the loop goes on with the other calls meanwhile."""

    def __init__(self) -> None:
        self._threads = Readers(WORKER_THREADS, "worker")

    async def run(
        self, weight_bytes: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a pure function and return its value: here if it is light, else on a thread."""
        if weight_bytes <= LIGHT_BYTES:
            return function(*args, **kwargs)
        return await self._threads.run(function, *args, **kwargs)

    def close(self) -> None:
        """Let running work end and stop."""
        self._threads.close()


def is_unanswered(error: Exception) -> bool:
    """Tell whether a write that failed so may have taken effect, or may yet."""
    return isinstance(error.__cause__, UnansweredError | HeldError)


def is_held(error: Exception) -> bool:
    """Tell whether a write failed for another that has not ended."""
    return isinstance(error.__cause__, HeldError)


def translated(error: Exception) -> Exception:
    """Return a store's exception as ours, or as it is where it is a fault of the service."""
    if isinstance(error, PoolExhausted):
        return OverloadedError(cause="no database connection became free in time")
    if isinstance(error, MasterKeyMissingError):
        return errors.EncryptionKeyMissingError(str(error), key_id=error.key_id, damage=str(error))
    if is_unavailable(error):
        return StoreUnavailableError(cause=getattr(error, "told", "") or type(error).__name__)
    if isinstance(error, StoreDamagedError | KeyDamagedError):
        return errors.StoreDamagedError(cause=str(error))
    if isinstance(error, DecodeError):  # what callers send is decoded elsewhere
        return errors.StoreDamagedError(cause="what is stored does not decode")
    if isinstance(error, OSError):  # of a spool or a file of attachments: a full disk, say
        return StoreUnavailableError(cause=error.strerror or type(error).__name__)
    return error
