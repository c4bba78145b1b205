"""Trains a dictionary for compressed bodies: python -m tests.tools.dictionary > FILE.

On text of this repository: prose, code and JSON as agents read and write them. The text that bytes
are measured with is made of words of its own, none of which is here, or it would measure nothing. A
dictionary that was released is never made again; a new one gets a byte of its own.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from zstandard import train_dictionary

ROOT = Path(__file__).parents[2]
SOURCES = ("*.md", "docs/**/*.md", "service/foldlog/**/*.py", "tests/**/*.py", "protos/**/*.proto")
LENGTHS = (160, 300, 600, 1_400)  # characters: what a user says, a call, an answer, a result
SIZE_BYTES = 32 * 1024


def samples() -> Iterator[bytes]:
    """Yield pieces of text, each of about the size of a message."""
    dice = random.Random(1)
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if "_pb2" not in path.name and "performance" not in path.parts:
                yield from _pieces(path.read_text(encoding="utf-8"), dice)


def _pieces(text: str, dice: random.Random) -> Iterator[bytes]:
    place = 0
    while place < len(text):
        length = dice.choice(LENGTHS)
        yield text[place : place + length].encode()
        place += length


if __name__ == "__main__":
    sys.stdout.buffer.write(train_dictionary(SIZE_BYTES, list(samples())).as_bytes())
