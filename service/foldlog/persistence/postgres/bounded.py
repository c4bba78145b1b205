"""A connection on which nothing is waited for without end."""

from __future__ import annotations

from collections.abc import Generator
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

from foldlog.persistence.timeouts import Timeouts

R = TypeVar("R")

# The server cancels a statement that takes too long; its answer, which tells that nothing was
# done, is to be there before it is given up.
ANSWER_S = 2.0
LOCK_MS = 2_000
IDLE_IN_TRANSACTION_MS = 60_000


def patience_s(timeouts: Timeouts) -> float:
    """Return how long a statement's answer is awaited."""
    return timeouts.statement_s + ANSWER_S


def set_timeouts(timeouts: Timeouts) -> str:
    """Return what tells the server how long it may take: it ends statements, never commits."""
    settings = {
        "statement_timeout": round(timeouts.statement_s * 1000),
        "lock_timeout": LOCK_MS,
        "idle_in_transaction_session_timeout": IDLE_IN_TRANSACTION_MS,
    }
    return "SELECT " + ", ".join(
        f"set_config('{name}', '{milliseconds}', false)" for name, milliseconds in settings.items()
    )


class GaveUpError(psycopg.OperationalError):
    """The server did not answer in time, and the connection was closed."""


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed once an answer takes longer than `patience_s`.

    Neither TCP nor the server's own timeouts notice each server that hangs: behind a proxy the
    packets are acknowledged, and a commit that waits for a standby is subject to no timeout.
    """

    patience_s = patience_s(Timeouts())

    def wait(self, gen: PQGen[R], *args: Any, **kwargs: Any) -> R:
        """Wait for what every blocking method waits for, as long as patience lasts."""
        return super().wait(self._bounded(gen), *args, **kwargs)

    def _bounded(self, steps: PQGen[R]) -> Generator[Any, Any, R]:
        deadline = monotonic() + self.patience_s
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if monotonic() > deadline:
                    self.close()
                    raise GaveUpError(f"no answer within {self.patience_s} s")
                wanted = steps.send(ready)
        except StopIteration as ended:
            result: R = ended.value
            return result
