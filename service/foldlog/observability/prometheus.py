"""The instruments, and the listener that shows them. Needs prometheus-client."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from foldlog.settings import split_address

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000)


class Prometheus:
    """The service's instruments in a registry of their own, served over HTTP until closed."""

    def __init__(self, listen: str) -> None:
        self.registry = CollectorRegistry()
        self._count_calls()
        self._count_writes()
        self._count_reads()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        host, port = split_address(listen)
        self._server, self._thread = start_http_server(port, host, self.registry)
        self.address = f"{host}:{self._server.server_port}"

    def close(self) -> None:
        """Stop serving and wait until the listener's thread has ended."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _count_calls(self) -> None:
        self.calls = self._counter("calls", "Calls that ended.", "method", "code")
        self.call_seconds = Histogram(
            "foldlog_call_seconds",
            "How long calls took.",
            ["method"],
            buckets=SECONDS,
            registry=self.registry,
        )

    def _count_writes(self) -> None:
        self.events = self._counter("events_appended", "Events that are durable.")
        self.failed_appends = self._counter(
            "failed_appends", "Batches that were refused or not stored.", "reason"
        )
        self.commit_rows = self._histogram("commit_rows", "Rows in one commit.", ROWS)
        self.commit_sessions = self._histogram("commit_sessions", "Sessions in one commit.", ROWS)
        self.commit_seconds = self._histogram("commit_seconds", "How long commits took.", SECONDS)

    def _count_reads(self) -> None:
        self.violations = self._counter("violations", "Violations found.", "kind", "mode")
        self.fold_cache_bytes = self._gauge("fold_cache_bytes", "Bytes the cache of folds holds.")
        self.fold_cache_looks = self._counter(
            "fold_cache_looks", "Looks into the cache of folds.", "result"
        )
        self.watches = self._gauge("open_watches", "Watches that are open.")
        self.index_lag = self._gauge("index_lag", "Rows the session index has yet to see.")

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"foldlog_{name}", says, labels, registry=self.registry)

    def _gauge(self, name: str, says: str) -> Gauge:
        return Gauge(f"foldlog_{name}", says, registry=self.registry)

    def _histogram(self, name: str, says: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"foldlog_{name}", says, buckets=buckets, registry=self.registry)
