"""What reaches a terminal cannot drive it."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from foldlog.cli.terminal import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, naïve, 你好, سلام", "plain, naïve, 你好, سلام"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\rb\x08c", "a\\rb\\x08c"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("a\nb", "a\\nb"),
        ("\ud800", "\\ud800"),
    ],
)
def test_steering_characters_are_shown_and_not_obeyed(text: str, expected: str) -> None:
    assert printable(text) == expected


def test_lines_stay_lines() -> None:
    assert printable_lines("a\n\tb\r\nc\x1b") == "a\n    b\nc\\x1b"


def test_no_control_character_of_unicode_gets_through() -> None:
    steering = {"Cc", "Cf", "Cs", "Zl", "Zp"} - {"\u200c", "\u200d"}
    text = "".join(map(chr, range(sys.maxunicode + 1)))
    passed = {c for c in printable(text) if unicodedata.category(c) in steering}
    assert passed == {"\u200c", "\u200d"}
