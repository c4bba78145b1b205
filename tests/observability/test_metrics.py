"""Metrics: counted once an address is given, shown where it says, nothing before."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Iterator

import pytest
from foldlog.observability.instruments import Metrics

EVERYTHING = """\
foldlog_calls_total{code="ABORTED",method="AppendEvents"} 1.0
foldlog_call_seconds_count{method="AppendEvents"} 2.0
foldlog_call_seconds_bucket{le="0.005",method="AppendEvents"} 1.0
foldlog_commit_rows_sum 12.0
foldlog_commit_sessions_sum 3.0
foldlog_commit_seconds_count 1.0
foldlog_events_appended_total 11.0
foldlog_failed_appends_total{reason="SEQ_CONFLICT"} 1.0
foldlog_violations_total{kind="ORDER",mode="warn"} 1.0
foldlog_fold_cache_bytes 4096.0
foldlog_fold_cache_looks_total{result="hit"} 1.0
foldlog_fold_cache_looks_total{result="miss"} 1.0
foldlog_open_watches 1.0
foldlog_index_lag 5.0
"""


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    made = Metrics()
    yield made
    made.close()


def shown(metrics: Metrics) -> str:
    with urllib.request.urlopen(f"http://{metrics.address}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def count_everything(metrics: Metrics) -> None:
    metrics.call_finished("AppendEvents", "OK", 0.003)
    metrics.call_finished("AppendEvents", "ABORTED", 0.3)
    metrics.committed(rows=12, sessions=3, seconds=0.002)
    metrics.events_appended(11)
    metrics.append_failed("SEQ_CONFLICT")
    metrics.violation("ORDER", "warn")
    metrics.fold_cache(1024, hit=False)
    metrics.fold_cache(4096, hit=True)
    metrics.watch_opened()
    metrics.watch_opened()
    metrics.watch_closed()
    metrics.index_lag(5)


def test_everything_counted_is_shown(metrics: Metrics) -> None:
    metrics.configure("127.0.0.1:0")
    count_everything(metrics)
    lines = shown(metrics).splitlines()
    assert [line for line in EVERYTHING.splitlines() if line not in lines] == []


def test_the_process_itself_is_shown(metrics: Metrics) -> None:
    metrics.configure("127.0.0.1:0")
    assert "process_resident_memory_bytes" in shown(metrics)


def test_nothing_is_served_or_counted_without_an_address(metrics: Metrics) -> None:
    metrics.configure("")
    count_everything(metrics)
    assert metrics.address == ""


def test_an_address_in_use_is_told(metrics: Metrics) -> None:
    metrics.configure("127.0.0.1:0")
    with pytest.raises(OSError, match=r"for metrics: Address already in use"):
        Metrics().configure(metrics.address)


def test_without_the_package_it_is_said_and_nothing_breaks(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.delitem(sys.modules, "foldlog.observability.prometheus", raising=False)
    metrics.configure("127.0.0.1:0")
    count_everything(metrics)
    assert metrics.address == ""
    assert "metrics.unavailable install=foldlog[metrics]" in caplog.messages
