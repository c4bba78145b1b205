"""Foldlog, but a writer that was replaced may go on."""

from __future__ import annotations

from dataclasses import replace

from foldlog.application import decisions
from foldlog.application.decisions import Guard
from foldlog.application.domain import Session

from tests.faults.unsafe.serving import serve_with

require_guard = decisions.require_guard


def require_expectation(head: Session, guard: Guard) -> None:
    """Raise unless the head is where the writer believes."""
    require_guard(head, replace(guard, writer_epoch=head.epoch or None))


if __name__ == "__main__":
    serve_with(decisions, "require_guard", require_expectation)
