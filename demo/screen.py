"""What a person sees: sections, claims with their evidence, tables, pieces of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foldlog import FoldedMessage, Message, Role
from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDTH = 100
ROLES: dict[int, tuple[str, str]] = {
    Role.SYSTEM: ("system", "magenta"),
    Role.USER: ("user", "bold cyan"),
    Role.ASSISTANT: ("assistant", "green"),
    Role.TOOL: ("tool", "yellow"),
}


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
        self._indented(Text(about, "dim"))

    def claim(self, holds: bool, claim: str, *evidence: str) -> None:
        """Print a claim and, line by line, what shows it. Raises ClaimError if it does not hold."""
        mark = Text("✓", "bold green") if holds else Text("✗", "bold red")
        rows = _grid()
        rows.add_row(mark, claim)
        for line in evidence:
            rows.add_row("", Text(line, "dim"))
        self._indented(rows)
        if not holds:
            raise ClaimError(claim)
        self.claims += 1

    def conclusion(self, text: str, hint: str) -> None:
        """Print the last lines."""
        self._console.print()
        self._console.print(Text(text, "bold green"))
        self._console.print(Text(hint, "dim"))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table; columns that begin with > hold numbers."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
        for column in columns:
            right = column.startswith(">")
            table.add_column(column.lstrip(">"), justify="right" if right else "left")
        for row in rows:
            table.add_row(*map(Text.from_markup, row))
        self._indented(table, above=1, below=1)

    def conversation(self, messages: Iterable[FoldedMessage]) -> None:
        """Print messages as the model sees them, one line each, with their seqs."""
        rows = _grid(3)
        for folded in messages:
            role, style = ROLES[folded.message.role]
            rows.add_row(Text(f"{folded.seq:>4}", "dim"), Text(role, style), gist(folded.message))
        self._indented(rows, above=1, below=1)

    def command(self, line: str, output: str) -> None:
        """Print a command and what it wrote."""
        shown = Text.assemble((f"$ {line}", "bold"), "\n", output.rstrip())
        self._indented(shown, above=1, below=1)

    def _indented(self, what: RenderableType, above: int = 0, below: int = 0) -> None:
        self._console.print(Padding(what, (above, 0, below, 3), expand=False))


def _grid(columns: int = 2) -> Table:
    grid = Table.grid(padding=(0, 1))
    for _ in range(columns - 1):
        grid.add_column(no_wrap=True)
    grid.add_column()
    return grid


def gist(message: Message, length: int = 60) -> str:
    """Return a message in one line: how it begins, and which tools it calls."""
    text = message.content if isinstance(message.content, str) else ""
    calls = ", ".join(f"{call.name}(…)" for call in message.tool_calls)
    words = " ".join(text.replace("*", "").split())
    room = length - len(calls) - 1 if calls else length
    short = words if len(words) <= room else f"{words[: max(room - 1, 0)].rstrip()}…"
    return f"{short} {calls}".strip()
