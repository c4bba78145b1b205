"""Documents as what they promise: commands, and Python blocks with the output they state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Example:
    """A Python block and the text block after it."""

    code: str
    output: str


def documents() -> list[Path]:
    """Return every document of the repository, the front page first."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(document: Path) -> list[str]:
    """Return the lines of the shell blocks, in order."""
    blocks = [text for language, text in BLOCK.findall(document.read_text()) if language == "sh"]
    return [line for block in blocks for line in block.splitlines() if line]


def examples(document: Path) -> list[Example]:
    """Return the Python blocks that a text block with their output follows, in order."""
    blocks = BLOCK.findall(document.read_text())
    following = [*blocks[1:], ("", "")]
    return [
        Example(code, output if language == "text" else "")
        for (kind, code), (language, output) in zip(blocks, following, strict=True)
        if kind == "python"
    ]


def links(document: Path) -> list[str]:
    """Return the targets of the links that stay in the repository, without fragments."""
    targets = [target.partition("#")[0] for target in LINK.findall(document.read_text())]
    return [target for target in targets if target and "://" not in target]
