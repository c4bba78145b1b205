"""Running the plain statements of small tables, whatever the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from foldlog.persistence.queries import Query


class Statements(Protocol):
    """Runs statements with %s for their parameters. Methods block, and any thread may call them."""

    def rows(self, query: Query) -> list[tuple[Any, ...]]:
        """Return what one SELECT gives."""

    def write(self, statements: Sequence[Query]) -> list[int]:
        """Run statements in one transaction; return how many rows each changed."""
