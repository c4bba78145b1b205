"""Messages and other events as a person reads them."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from foldlog.cli.documents import role_name
from foldlog.cli.items import Beginning, Entry, Item, Remark
from foldlog.cli.terminal import printable, printable_lines
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

ROLE_STYLES: dict[int, str] = {
    Role.SYSTEM: "magenta",
    Role.USER: "bold cyan",
    Role.ASSISTANT: "green",
    Role.TOOL: "yellow",
}
FADED = "dim strike"
MARGIN = "dim"
SEQ_WIDTH = 5
# How much is shown unless everything is asked for.
RESULT_LINES = 8
RESULT_CHARACTERS = 2_000
ARGUMENT_CHARACTERS = 60
ARGUMENTS_CHARACTERS = 200


@dataclass(slots=True)
class Transcript:
    """Renders items one after the other, and knows the calls that results answer.

    `knows_all` says that the items begin where the log does, so that a call not seen is not there.
    """

    is_full: bool = False
    knows_all: bool = True
    _callers: dict[str, int] = field(default_factory=dict, init=False)
    _group: str | None = field(default=None, init=False)

    def rendered(self, item: Item) -> RenderableType:
        """Return an item for a console to print."""
        return self._entry(item) if isinstance(item, Entry) else _remark(item)

    def _entry(self, entry: Entry) -> RenderableType:
        """Return a message with its seq, who speaks, and what it says."""
        message = entry.message
        rows = _grid()
        where = str(entry.seq)
        if entry.position != entry.seq:
            where = f"{where}@{entry.position}"
        role = Text(role_name(message.role), ROLE_STYLES.get(message.role, "bold red"))
        lines = [*self._lines(entry)]
        if entry.gone:
            lines = [_faded(line) for line in lines]
            lines[:0] = [Text(entry.gone, "dim italic")]
            role.stylize("dim")
        if entry.shadows:
            lines[:0] = [Text(entry.shadows, "dim italic")]
        rows.add_row(Text(where, MARGIN), self._bracket(entry), role, lines[0] if lines else "")
        for line in lines[1:]:
            rows.add_row("", "", "", line)
        return rows

    def _bracket(self, entry: Entry) -> Text:
        """Return the mark that ties the messages of a group: they were one for the provider."""
        begins, self._group = entry.group != self._group, entry.group
        return Text(" " if entry.group is None else "┌" if begins else "│", MARGIN)

    def _lines(self, entry: Entry) -> Iterator[Text]:
        message = entry.message
        if message.tool_call_id is not None:
            yield self._answered(entry)
        if message.reasoning:
            yield Text(printable_lines(message.reasoning), "dim italic")
        placed = yield from self._content(message)
        for index, call in enumerate(message.tool_calls):
            if index not in placed:
                yield self._call(call)
        for call in message.tool_calls:
            if not entry.gone:
                self._callers[call.id or ""] = entry.seq

    def _content(self, message: Message) -> Generator[Text, None, set[int]]:
        """Yield the content, and return the indexes of the tool calls that stand in it."""
        placed: set[int] = set()
        match message.content:
            case None:
                if not message.tool_calls:
                    yield Text("no content", "dim italic")
            case str(text):
                yield self._text(text, message.role)
            case parts:
                for part in parts:
                    if isinstance(part, ToolCallPart) and part.index < len(message.tool_calls):
                        placed.add(part.index)
                        yield self._call(message.tool_calls[part.index])
                    else:
                        yield self._part(part, message.role)
        return placed

    def _part(self, part: Part, role: int) -> Text:
        match part:
            case TextPart(text):
                return self._text(text, role)
            case ReasoningPart(text=None):
                return Text("[opaque reasoning]", "dim italic")
            case ReasoningPart(text=str(text)):
                return Text(printable_lines(text), "dim italic")
            case _:
                return Text(f"[{printable(_summary(part))}]", "blue")

    def _text(self, text: str, role: int) -> Text:
        if not text:
            return Text("empty text", "dim italic")
        if self.is_full or role != Role.TOOL:
            return Text(printable_lines(text.rstrip("\n")))
        return _abbreviated(text.rstrip("\n"))

    def _call(self, call: ToolCall) -> Text:
        said = Text.assemble(("→ ", "bold"), (printable(call.name or "unnamed"), "bold"))
        arguments = call.arguments or ""
        said.append(f"({printable(arguments if self.is_full else _arguments(arguments))})")
        return said.append(f"  {printable(call.id or 'without id')}", "dim")

    def _answered(self, entry: Entry) -> Text:
        message = entry.message
        name = f"{printable(message.name)} " if message.name else ""
        said = Text(f"← {name}", "bold").append(printable(message.tool_call_id or ""), "dim")
        caller = self._callers.get(message.tool_call_id or "")
        if caller is not None:
            return said.append(f" of {caller}", "dim")
        is_orphan = self.knows_all and not entry.gone
        return said.append("  answers no call above", "red") if is_orphan else said


def _remark(remark: Remark) -> RenderableType:
    seq = "" if remark.seq is None else str(remark.seq)
    is_turn = isinstance(remark, Beginning) and remark.is_turn
    said = Text.assemble(
        "\n" if is_turn else "",
        (f"{seq:>{SEQ_WIDTH}}   ", MARGIN),
        ("── " if is_turn else "· ", MARGIN),
        (printable(remark.text), FADED if remark.gone else MARGIN),
    )
    return said.append(f"  {remark.gone}", "dim italic") if remark.gone else said


def _grid() -> Table:
    rows = Table.grid(padding=(0, 1))
    rows.add_column(width=SEQ_WIDTH, justify="right", no_wrap=True, overflow="fold")
    rows.add_column(width=1)
    rows.add_column(width=9, no_wrap=True)
    rows.add_column(overflow="fold")
    return rows


def _faded(line: Text) -> Text:
    return Text(line.plain, FADED)


def _summary(part: Part) -> str:
    match part:
        case AttachmentPart(sha256, media_type, name, size_bytes):
            size = None if size_bytes is None else f"{size_bytes:,} bytes"
            said = ", ".join(filter(None, (name, media_type, size)))
            return f"attachment {said}, sha256 {sha256.hex()[:12]}…"
        case OpaquePart(kind, text):
            return f"{kind}, {len(text.encode()):,} bytes of JSON"
        case ToolCallPart(index):
            return f"tool call {index}, which is not there"
        case UnknownPart():
            return "a part of a newer release"
    return type(part).__name__


def _abbreviated(text: str) -> Text:
    lines = text[:RESULT_CHARACTERS].splitlines()[:RESULT_LINES]
    said = Text(printable_lines("\n".join(lines)))
    rest = len(text) - len("\n".join(lines))
    if rest > 1:
        said.append(f"\n… {rest:,} more characters", "dim")
    return said


def _arguments(arguments: str) -> str:
    """Return arguments as a call is written, shortened; as they are where they are no object."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return _shortened(arguments, ARGUMENTS_CHARACTERS)
    if not isinstance(given, dict):
        return _shortened(arguments, ARGUMENTS_CHARACTERS)
    said = (
        f"{name}={_shortened(_value(value), ARGUMENT_CHARACTERS)}" for name, value in given.items()
    )
    return _shortened(", ".join(said), ARGUMENTS_CHARACTERS)


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
