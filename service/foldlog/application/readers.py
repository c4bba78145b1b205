"""A few threads for what would hold up the loop, and the store's exceptions as ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
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


class Readers:
    """A bounded pool of threads. What they raise is ours, or a uniqueness error, or a fault.

    With `wait_s`, a caller that no thread serves in that time gets OverloadedError.
    """

    def __init__(self, threads: int, name: str, wait_s: float | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._free = asyncio.Semaphore(threads)
        self._wait_s = wait_s

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function on a thread and return its value."""
        await self._admitted()
        loop = asyncio.get_running_loop()
        try:
            running = loop.run_in_executor(self._pool, partial(function, *args, **kwargs))
        except BaseException:
            self._free.release()
            raise
        running.add_done_callback(self._ended)
        try:
            # Whoever goes away leaves the thread at work.
            return await asyncio.shield(running)
        except (FoldlogError, IntegrityError):
            raise
        except Exception as error:
            raise translated(error) from error

    async def _admitted(self) -> None:
        """Wait for a thread."""
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise OverloadedError(cause="no thread to the database became free in time") from None

    def _ended(self, running: asyncio.Future[Any]) -> None:
        self._free.release()
        if not running.cancelled():
            running.exception()  # seen, also where nobody waits for it any more

    def close(self) -> None:
        """Let running work end and stop."""
        self._pool.shutdown(wait=True, cancel_futures=True)


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
