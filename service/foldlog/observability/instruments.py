"""Metrics: what the service counts, and where Prometheus reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foldlog.observability.logs import log

if TYPE_CHECKING:
    from foldlog.observability.prometheus import Prometheus


class Metrics:
    """What the service counts. Each method does nothing until `configure` was given an address."""

    def __init__(self) -> None:
        self._to: Prometheus | None = None

    @property
    def address(self) -> str:
        """Where /metrics is served, as HOST:PORT; empty while it is not."""
        return self._to.address if self._to else ""

    def configure(self, listen: str) -> None:
        """Serve /metrics at HOST:PORT, port 0 for any free one; an empty text ends it.

        Raises OSError if the address cannot be listened on.
        """
        self.close()
        if not listen:
            return
        try:
            from foldlog.observability.prometheus import Prometheus
        except ModuleNotFoundError:
            log("metrics.unavailable", "warning", install="foldlog[metrics]")
            return
        try:
            self._to = Prometheus(listen)
        except OSError as error:
            raise OSError(f"cannot listen on {listen} for metrics: {error.strerror}") from error
        log("metrics.listening", address=self._to.address)

    def close(self) -> None:
        """Stop serving /metrics and forget what was counted."""
        if self._to:
            self._to.close()
        self._to = None

    def call_finished(self, method: str, code: str, seconds: float) -> None:
        """Count a call that ended, by its method's name and its gRPC code's, and its duration."""
        if self._to:
            self._to.calls.labels(method, code).inc()
            self._to.call_seconds.labels(method).observe(seconds)

    def committed(self, rows: int, sessions: int, seconds: float) -> None:
        """Count a commit: how many rows of how many sessions, and how long the store took."""
        if self._to:
            self._to.commit_rows.observe(rows)
            self._to.commit_sessions.observe(sessions)
            self._to.commit_seconds.observe(seconds)

    def events_appended(self, count: int) -> None:
        """Count events that are durable."""
        if self._to:
            self._to.events.inc(count)

    def append_failed(self, reason: str) -> None:
        """Count a batch of events that was refused or not stored, by its error's reason."""
        if self._to:
            self._to.failed_appends.labels(reason).inc()

    def violation(self, kind: str, mode: str) -> None:
        """Count a violation, by its kind's name and the mode of the check."""
        if self._to:
            self._to.violations.labels(kind, mode).inc()

    def fold_cache(self, bytes_: int, hit: bool) -> None:
        """Count a look into the cache of folds, and say how many bytes it holds."""
        if self._to:
            self._to.fold_cache_bytes.set(bytes_)
            self._to.fold_cache_looks.labels("hit" if hit else "miss").inc()

    def watch_opened(self) -> None:
        """Count a watch as open."""
        if self._to:
            self._to.watches.inc()

    def watch_closed(self) -> None:
        """Count a watch as closed."""
        if self._to:
            self._to.watches.dec()

    def index_lag(self, rows: int) -> None:
        """Say how many rows the session index has yet to see."""
        if self._to:
            self._to.index_lag.set(rows)
