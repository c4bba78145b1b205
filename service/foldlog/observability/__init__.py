"""What operators see of a running service: logs, metrics and traces.

Every name here may be called at any time; before `setup`, and without the optional packages, logs
go to Python's logging as it is configured, and metrics and traces cost next to nothing.
"""

from __future__ import annotations

from foldlog.observability import tracing
from foldlog.observability.instruments import Metrics
from foldlog.observability.logs import configure as _configure_logs
from foldlog.observability.logs import log
from foldlog.settings import Settings

__all__ = ["Metrics", "log", "metrics", "setup", "tracing"]

metrics = Metrics()


def setup(settings: Settings) -> None:
    """Configure logs, metrics and tracing for this process. A later call configures them anew.

    Raises OSError if the address for metrics cannot be listened on.
    """
    _configure_logs(settings)
    metrics.configure(settings.metrics_listen)
    tracing.configure(enabled=settings.tracing)
