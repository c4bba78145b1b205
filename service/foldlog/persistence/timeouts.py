"""How long a database may take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timeouts:
    """What a database may take for a statement, and to commit."""

    statement_s: float = 30.0
    commit_s: float = 10.0
