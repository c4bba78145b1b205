"""What a person sees: sections, claims with their evidence, tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDTH = 100


class ClaimError(AssertionError):
    """Something that was claimed did not hold."""


class Screen:
    """Prints the story. A claim that does not hold ends it."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._console.width = min(self._console.width, WIDTH)
        self._sections = 0
        self.claims = 0

    def title(self, text: str, under: str) -> None:
        """Print the headline."""
        self._console.print(Text(text, "bold"), Text(under, "dim"), sep="\n")

    def section(self, title: str, about: str = "") -> None:
        """Begin a section."""
        self._sections += 1
        heading = Text.assemble((f"{self._sections}  ", "bold cyan"), (title, "bold"))
        self._console.print()
        self._console.print(heading)
        if about:
            self._console.print(Padding(Text(about, "dim"), (0, 0, 0, 3)))

    def claim(self, holds: bool, claim: str, evidence: str = "") -> None:
        """Print a claim and what shows it. Raises ClaimError if it does not hold."""
        mark = ("✓ ", "bold green") if holds else ("✗ ", "bold red")
        lines = Text.assemble(mark, claim)
        if evidence:
            lines.append(f"\n  {evidence}", "dim")
        self._console.print(Padding(lines, (0, 0, 0, 3)))
        if not holds:
            raise ClaimError(claim)
        self.claims += 1

    def note(self, text: str, style: str = "") -> None:
        """Print a line that claims nothing."""
        self._console.print(Padding(Text(text, style), (0, 0, 0, 3)))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; columns that begin with > hold numbers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
        for column in columns:
            right = column.startswith(">")
            table.add_column(column.lstrip(">"), justify="right" if right else "left")
        for row in rows:
            table.add_row(*map(Text.from_markup, row))
        self._console.print(Padding(table, (0, 0, 0, 3)))
