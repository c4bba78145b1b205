"""What a terminal shows: consoles, and texts that cannot drive it."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# What goes into a pipe or a file is not wrapped: other programs read its lines.
UNBOUNDED_WIDTH = 1_000_000
# Characters that steer a terminal or reorder what it shows: C0, C1, format and separators.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Joins emoji and letters of several scripts; shows nothing by itself.
_JOINERS = frozenset({"\u200c", "\u200d"})


def printable(text: str, *, keep: str = "") -> str:
    """Return a text whose steering characters are escaped, as in `\\x1b`, but those to keep."""
    if text.isprintable():
        return text
    return "".join(_shown(c) if c not in keep else c for c in text)


def printable_lines(text: str) -> str:
    """Return `printable` text whose line breaks stay and whose tabs are spaces."""
    return printable(text.replace("\r\n", "\n").expandtabs(4), keep="\n")


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _STEERING or character in _JOINERS:
        return character
    return character.encode("unicode_escape").decode("ascii")


def output() -> Console:
    """Return the console of stdout. It has no colour if that is no terminal or NO_COLOR is set."""
    return _console(sys.stdout)


def notes() -> Console:
    """Return the console of stderr."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    from rich.console import Console

    return Console(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if stream.isatty() else UNBOUNDED_WIDTH,
    )


def put(renderable: RenderableType) -> None:
    """Print to stdout. What goes into a pipe or a file has no spaces at the ends of lines."""
    console = output()
    if console.is_terminal:
        console.print(renderable)
        return
    with console.capture() as captured:
        console.print(renderable)
    lines = captured.get().removesuffix("\n").split("\n")
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


def print_json(document: object) -> None:
    """Print one JSON document on one line of stdout."""
    import orjson

    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS).decode() + "\n")
    sys.stdout.flush()


def print_json_lines(documents: Iterable[object]) -> None:
    """Print JSON Lines to stdout, each as soon as it is there."""
    for document in documents:
        print_json(document)
