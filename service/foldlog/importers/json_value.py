"""JSON as it is read from files: strict where it must be, and outspoken about what it alters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isinf
from typing import Final, NoReturn

SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Only an escape can bring in a surrogate: UTF-8 has no form for one.
SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, and how it differs from what the text says. Equal unless `alterations` says."""

    value: object
    alterations: tuple[str, ...] = ()


def parsed(data: bytes) -> Parsed:
    """Return the value of a JSON text. Raises ValueError, which says why it is none."""
    reading = _Reading()
    try:
        text = data.decode("utf-8-sig")
        value = reading.decoder().decode(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return _without_surrogates(value, data, reading.alterations)


def text_in(fields: Mapping[str, object], name: str) -> str | None:
    """Return a member that is a text; None if there is none, or it is something else."""
    value = fields.get(name)
    return value if isinstance(value, str) else None


def elements(text: str, start: int) -> tuple[list[object], int, bool]:
    """Return the whole elements of a JSON list from after its bracket, where they end, and whether
    the list does.
    """
    decoder, found, at = _Reading().decoder(), list[object](), _blank(text, start)
    while at < len(text) and text[at] != "]":
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return found, at, False
        at = _blank(text, at)
        if text[at : at + 1] not in (",", "]"):
            return found, at, False
        found.append(value)
        at = _blank(text, at + 1) if text[at] == "," else at
    return found, at, text[at : at + 1] == "]"


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def dumps(value: object) -> str:
    """Return the compact JSON text of a value, members in order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class _Reading:
    """One reading of a text. Notes what a Python value cannot hold."""

    def __init__(self) -> None:
        self.alterations: list[str] = []

    def decoder(self) -> json.JSONDecoder:
        return json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_float=self._float,
            parse_constant=_refuse_constant,
        )

    def _object(self, pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self._note("a member stands twice in an object: the last one counts")
        return found

    def _float(self, text: str) -> float:
        number = float(text)
        if isinf(number):
            raise ValueError(f"{text} is beyond any number")
        if Decimal(repr(number)) != Decimal(text):
            self._note("a number has more digits than a double holds")
        return number

    def _note(self, alteration: str) -> None:
        if alteration not in self.alterations:
            self.alterations.append(alteration)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} has no place in JSON")


def _without_surrogates(value: object, data: bytes, alterations: list[str]) -> Parsed:
    if SURROGATE_ESCAPE.search(data) and SURROGATE.search(text := dumps(value)):
        value = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        alterations.append("half a character stands alone: U+FFFD took its place")
    return Parsed(value, tuple(alterations))
