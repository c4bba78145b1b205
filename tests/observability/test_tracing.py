"""Traces: a span per call and commit, the caller's context, violations as events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from foldlog.observability import tracing
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    """Where finished spans are. A process has one provider, set once."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    tracing.configure(enabled=True)
    yield exporter
    tracing.configure(enabled=False)


def only(spans: InMemorySpanExporter) -> ReadableSpan:
    (span,) = spans.get_finished_spans()
    return span


def test_a_call_has_a_span_below_its_callers(spans: InMemorySpanExporter) -> None:
    metadata: list[tuple[str, str | bytes]] = [
        ("traceparent", f"00-{TRACE}-{SPAN}-01"),
        ("data-bin", b"\x00"),
    ]
    with tracing.call_span("/foldlog.v1.SessionService/AppendEvents", metadata):
        pass
    span = only(spans)
    assert span.name == "foldlog.v1.SessionService/AppendEvents"
    assert span.kind is trace.SpanKind.SERVER
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}-{span.parent.span_id:016x}" == f"{TRACE}-{SPAN}"
    assert dict(span.attributes or {}) == {
        "rpc.system": "grpc",
        "rpc.service": "foldlog.v1.SessionService",
        "rpc.method": "AppendEvents",
    }


def test_a_call_without_context_begins_a_trace(spans: InMemorySpanExporter) -> None:
    with tracing.call_span("GetSession", None):
        pass
    assert only(spans).parent is None


def test_a_commit_has_a_span_with_its_size(spans: InMemorySpanExporter) -> None:
    with tracing.commit_span(rows=12, sessions=3):
        pass
    span = only(spans)
    assert span.name == "foldlog.commit"
    assert dict(span.attributes or {}) == {"foldlog.rows": 12, "foldlog.sessions": 3}


def _call() -> AbstractContextManager[object]:
    return tracing.call_span("AppendEvents", ())


def _commit() -> AbstractContextManager[object]:
    return tracing.commit_span(1, 1)


@pytest.mark.parametrize("span_of", [_call, _commit])
def test_a_failed_span_names_the_kind_of_error_and_not_its_text(
    span_of: Callable[[], AbstractContextManager[object]], spans: InMemorySpanExporter
) -> None:
    with pytest.raises(ValueError, match="payload"), span_of():
        raise ValueError("payload")
    span = only(spans)
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description == "ValueError"
    assert "payload" not in span.to_json()


def test_a_violation_is_an_event_of_the_calls_span(spans: InMemorySpanExporter) -> None:
    with tracing.call_span("CheckRequest", ()):
        tracing.violation_event(
            kind="ORPHANED_TOOL_RESULT",
            index=2,
            request_length=4,
            log_length=4,
            tool_call_id="c1",
            session="s",
            agent_name=None,
            mode="warn",
        )
    (event,) = only(spans).events
    assert event.name == "foldlog.session.invariant.violation"
    assert dict(event.attributes or {}) == {
        "kind": "ORPHANED_TOOL_RESULT",
        "index": 2,
        "request_length": 4,
        "log_length": 4,
        "tool_call_id": "c1",
        "session": "s",
        "mode": "warn",
    }


def test_nothing_is_traced_when_it_is_off(exporter: InMemorySpanExporter) -> None:
    exporter.clear()
    tracing.configure(enabled=False)
    with tracing.call_span("AppendEvents", ()), tracing.commit_span(1, 1):
        tracing.violation_event(kind="ORDER")
    assert exporter.get_finished_spans() == ()


def test_without_the_package_it_is_said_and_nothing_breaks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tracing.configure(enabled=True)
    with tracing.call_span("AppendEvents", ()), tracing.commit_span(1, 1):
        tracing.violation_event(kind="ORDER")
    assert "tracing.unavailable install=foldlog[tracing]" in caplog.messages
