"""A few threads for blocking store work, and the store's exceptions as ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from eventsourcing.persistence import IntegrityError

from foldlog.core.errors import FoldlogError, OverloadedError, StoreUnavailableError
from foldlog.persistence.errors import PoolExhausted, is_unavailable

P = ParamSpec("P")
T = TypeVar("T")


class Readers:
    """A bounded pool of threads. What they raise is ours, or a uniqueness error, or a fault."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function on a thread and return its value."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, partial(function, *args, **kwargs))
        except (FoldlogError, IntegrityError):
            raise
        except Exception as error:
            raise translated(error) from error

    def close(self) -> None:
        """Let running work end and stop."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def translated(error: Exception) -> Exception:
    """Return a store's exception as ours, or as it is where it is a fault of the service."""
    if isinstance(error, PoolExhausted):
        return OverloadedError(cause="no database connection became free in time")
    if is_unavailable(error):
        return StoreUnavailableError(cause=type(error).__name__)
    return error
