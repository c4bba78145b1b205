"""Drives an operation without a server: what it asks for is kept, what comes of it is scripted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldlog.client.errors import ConnectionLostError
from foldlog.client.retries import RetryPolicy
from foldlog.client.state import ClientState, SendLimits, SessionState
from foldlog.client.steps import Done, Emit, Failure, Open, Receive, Run, Sleep, Stream, Unary
from foldlog.client.tls import Tls

LOST = Failure(ConnectionLostError(status="UNAVAILABLE", details="gone"), is_transient=True)
END = None


class State(ClientState[SessionState]):
    """A client without a wire."""

    session_kind = SessionState

    @staticmethod
    def wire_kind(address: str, tls: Tls | None, metadata: object) -> None:
        """There is none."""


class Script:
    """A stream that is a name only; it knows whether it was cancelled."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Note it."""
        self.cancelled = True


class Driven:
    """An operation that was driven to its end, or until its script ran out.

    `asked` has the requests that were sent, `slept` the delays, `emitted` the values, `result` the
    result, `streams` what was opened.
    """

    def __init__(self, operation: Any, outcomes: Iterable[object]) -> None:
        self.asked: list[Any] = []
        self.timeouts_s: list[float | None] = []
        self.slept: list[float] = []
        self.emitted: list[Any] = []
        self.streams: list[Script] = []
        self.result: Any = None
        self._outcomes = iter(outcomes)
        self._drive(Run(operation))

    def _drive(self, run: Run) -> None:
        while True:
            match run.advance():
                case Done(result):
                    self.result = result
                    return
                case Emit(value):
                    self.emitted.append(value)
                case Sleep(delay_s):
                    self.slept.append(delay_s)
                case Open(_, request, timeout_s):
                    self._keep(request, timeout_s)
                    self.streams.append(Script())
                    run.outcome = self.streams[-1]
                case Unary(_, request, timeout_s):
                    self._keep(request, timeout_s)
                    run.outcome = next(self._outcomes)
                case Receive():
                    try:
                        run.outcome = next(self._outcomes)
                    except StopIteration:
                        run.close()
                        return

    def _keep(self, request: Any, timeout_s: float | None) -> None:
        copy = type(request)()
        copy.CopyFrom(request)
        self.asked.append(copy)
        self.timeouts_s.append(timeout_s)


def session(**settings: Any) -> SessionState:
    """Return a session of a client that has no wire."""
    return State("nowhere", **settings).session("s1")


__all__ = ["END", "LOST", "Driven", "RetryPolicy", "SendLimits", "State", "Stream", "session"]
