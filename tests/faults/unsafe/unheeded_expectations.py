"""Foldlog, but it writes whatever next_seq the writer expects."""

from __future__ import annotations

from dataclasses import replace

from foldlog.application import decisions
from foldlog.application.decisions import Guard
from foldlog.application.domain import Session

from tests.faults.unsafe.serving import serve_with

require_guard = decisions.require_guard


def require_epoch(head: Session, guard: Guard) -> None:
    """Raise unless the writer may write."""
    require_guard(head, replace(guard, expected_next_seq=None))


if __name__ == "__main__":
    serve_with(decisions, "require_guard", require_epoch)
