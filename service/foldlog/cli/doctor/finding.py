"""What doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

INDEX_LAG_ROWS = 10_000


class Severity(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    """As it should be."""
    NOTE = "note"
    """Nothing wrong; worth knowing."""
    WARNING = "warning"
    """Works now, and may not later."""
    FAULT = "fault"
    """Does not work, or data can be lost."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `why` says why it matters, `fix` what to do; both empty if it is ok."""

    severity: Severity
    subject: str
    what: str
    why: str = ""
    fix: str = ""


def ok(subject: str, what: str) -> Finding:
    """Return the finding that something is as it should be."""
    return Finding(Severity.OK, subject, what)


def note(subject: str, what: str, why: str = "", fix: str = "") -> Finding:
    """Return a finding that is worth knowing."""
    return Finding(Severity.NOTE, subject, what, why, fix)


def warning(subject: str, what: str, why: str, fix: str) -> Finding:
    """Return a finding of something that may go wrong."""
    return Finding(Severity.WARNING, subject, what, why, fix)


def fault(subject: str, what: str, why: str, fix: str) -> Finding:
    """Return a finding of something that is wrong."""
    return Finding(Severity.FAULT, subject, what, why, fix)


def index_lag(rows: int) -> Finding:
    """Return the finding that the session index has yet to see so many rows."""
    if rows <= INDEX_LAG_ROWS:
        return ok("index", f"the session index is {rows} rows behind the log")
    return warning(
        "index",
        f"the session index is {rows} rows behind the log",
        "Listings wait for it and are slow, or miss what other processes wrote.",
        "It catches up while the service runs. If it does not, look in the log for `index`.",
    )
