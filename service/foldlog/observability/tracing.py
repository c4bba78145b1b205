"""Traces: one OpenTelemetry span per call and per commit. Needs opentelemetry-api to do anything.

Where the process has no tracer provider yet and opentelemetry-sdk is there, `configure` makes one
whose exporters are those that OTEL_TRACES_EXPORTER names (`otlp` unless set; `console` is in the
SDK).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from foldlog.observability.logs import log

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

VIOLATION_EVENT = "foldlog.session.invariant.violation"
SERVICE = "foldlog.v1.SessionService"

_tracer: Tracer | None = None


def configure(*, enabled: bool) -> None:
    """Turn tracing on or off for this process."""
    global _tracer
    _tracer = None
    if not enabled:
        return
    try:
        from opentelemetry import trace
    except ModuleNotFoundError:
        log("tracing.unavailable", "warning", install="foldlog[tracing]")
        return
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        _provide()
    _tracer = trace.get_tracer("foldlog")


def call_span(
    method: str, metadata: Iterable[tuple[str, str | bytes]] | None = None
) -> AbstractContextManager[object]:
    """Return the span of a call, child of the W3C context that the gRPC metadata carries.

    An exception that leaves it marks the span as failed.
    """
    if _tracer is None:
        return nullcontext()
    return _span(_tracer, **_call_options(method, metadata or ()))


def commit_span(rows: int, sessions: int) -> AbstractContextManager[object]:
    """Return the span of a commit."""
    if _tracer is None:
        return nullcontext()
    attributes = {"foldlog.rows": rows, "foldlog.sessions": sessions}
    return _span(_tracer, name="foldlog.commit", attributes=attributes)


def violation_event(**fields: object) -> None:
    """Add a violation to the current span: its kind, index, lengths, session and so on.

    Fields that are None are left out.
    """
    if _tracer is None:
        return
    from opentelemetry import trace

    given = {name: _attribute(value) for name, value in fields.items() if value is not None}
    trace.get_current_span().add_event(VIOLATION_EVENT, given)


def _attribute(value: object) -> str | bool | int | float:
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _call_options(method: str, metadata: Iterable[tuple[str, str | bytes]]) -> dict[str, Any]:
    from opentelemetry import propagate, trace

    name = method.rsplit("/", 1)[-1]
    carrier = {key: value for key, value in metadata if isinstance(value, str)}
    return {
        "name": f"{SERVICE}/{name}",
        "context": propagate.extract(carrier),
        "kind": trace.SpanKind.SERVER,
        "attributes": {"rpc.system": "grpc", "rpc.service": SERVICE, "rpc.method": name},
    }


@contextmanager
def _span(tracer: Tracer, **options: Any) -> Iterator[object]:
    """Make a span the current one.

    Of an exception only the kind is kept: its text may quote a payload.
    """
    from opentelemetry.trace import StatusCode

    with tracer.start_as_current_span(
        record_exception=False, set_status_on_exception=False, **options
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise


def _provide() -> None:
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
    except ModuleNotFoundError:
        log("tracing.no_provider", "warning", install="foldlog[tracing]")
        return
    service = os.environ.get("OTEL_SERVICE_NAME", "foldlog")
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    for exporter in os.environ.get("OTEL_TRACES_EXPORTER", "otlp").split(","):
        _add_exporter(provider, exporter.strip())
    trace.set_tracer_provider(provider)


def _add_exporter(provider: TracerProvider, name: str) -> None:
    from importlib.metadata import entry_points

    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if name in {"", "none"}:
        return
    found = [*entry_points(group="opentelemetry_traces_exporter", name=name)]
    if not found:
        log("tracing.no_exporter", "warning", exporter=name)
        return
    provider.add_span_processor(BatchSpanProcessor(found[0].load()()))
