"""What cannot be encoded is refused before sending, by the field that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Final, TypeVar

from foldlog.core.errors import InvalidFieldError

MISFITS: Final = (ValueError, TypeError)
V = TypeVar("V")
R = TypeVar("R")


def valid_session_id(session_id: str, field: str = "session_id") -> str:
    """Return the id. Raises InvalidFieldError for one that no session can have."""
    if not session_id:
        raise InvalidFieldError.of(field, "is empty")
    if "\0" in session_id:
        raise InvalidFieldError.of(field, "holds a NUL")
    fitting(session_id, str.encode, field)
    return session_id


def fitting(value: V, encode: Callable[[V], R], path: str) -> R:
    """Return the encoded value. Raises InvalidFieldError whose fields begin with the path."""
    try:
        return encode(value)
    except MISFITS as error:
        lone = {where: "holds a lone surrogate" for where in _lone_surrogates(value, path)}
        raise InvalidFieldError(fields=lone or {path or "value": str(error)}) from None


def _lone_surrogates(value: object, path: str) -> Iterator[str]:
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            yield path
    elif isinstance(value, tuple | list):
        for index, each in enumerate(value):
            yield from _lone_surrogates(each, f"{path}[{index}]")
    elif is_dataclass(value):
        for each in fields(value):
            inner = f"{path}.{each.name}" if path else each.name
            yield from _lone_surrogates(getattr(value, each.name), inner)
