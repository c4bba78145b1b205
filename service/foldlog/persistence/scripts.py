"""Where the migrations are, and what statements one holds."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]


def migrations(dialect: str) -> Traversable:
    """Return the folder of a dialect's migrations: of the installed package, or of the checkout."""
    packaged = files("foldlog") / "migrations" / dialect
    return packaged if packaged.is_dir() else CHECKOUT / "migrations" / dialect


def statements(step: Traversable) -> list[str]:
    """Return the statements of a migration: each ends with a semicolon at the end of a line."""
    text = step.read_text(encoding="utf-8")
    return [part.strip() for part in text.split(";\n") if part.strip()]
