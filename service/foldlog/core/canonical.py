"""Free JSON: what is lossless, and the form in which two texts compare."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from json import JSONDecodeError

from foldlog.core.errors import InvalidFieldError

# The interpreter's own JSON reader and writer recurse. Nothing nests this deep in earnest.
SAFE_DEPTH = 400

_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
# A number is read as a string behind a lone surrogate, which no string of lossless JSON holds: so
# its token passes through the reader and the writer as it was written.
_MARK = "\ud800"
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


class _LossyError(ValueError):
    """The text is JSON to some readers, but two readers may see different things."""


def check_free_json(text: str, field: str, max_depth: int) -> None:
    """Raise InvalidFieldError naming the field unless the text is lossless JSON.

    Refused are texts that are not JSON, NaN and Infinity, duplicate keys, lone surrogates, and
    nesting over max_depth. Numbers may be of any size: they are never converted.
    """
    try:
        _require_scalars(text)
        _require_depth(text, min(max_depth, SAFE_DEPTH))
        _READER.decode(text)
    except JSONDecodeError as error:
        raise InvalidFieldError.of(
            field, f"is not JSON: {error.msg} at character {error.pos}"
        ) from None
    except _LossyError as error:
        raise InvalidFieldError.of(field, str(error)) from None


def canonical(text: str, without: str | None = None) -> str:
    """Return the form in which JSON texts compare: keys sorted, no white space, escapes normalised.

    Number tokens stay as written, so 1, 1.0 and 1e0 differ. A text that is not lossless JSON, or is
    nested over SAFE_DEPTH, comes back as it is: no canonical form is such a text, so the two kinds
    never meet. Members of an outermost object whose names begin with `without` are left out.
    """
    try:
        _require_scalars(text)
        _require_depth(text, SAFE_DEPTH)
        value = _READER.decode(text)
    except ValueError:
        return text
    if without is not None and isinstance(value, dict):
        value = {key: member for key, member in value.items() if not key.startswith(without)}
    return _MARKED.sub(r"\1", _WRITER.encode(value))


def json_equal(a: str, b: str) -> bool:
    """Return whether two texts are the same JSON; what is not lossless JSON compares as text."""
    return a == b or canonical(a) == canonical(b)


def _require_scalars(text: str) -> None:
    """Raise _LossyError at a surrogate that stands alone, be it written out or escaped."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _LossyError(f"has a lone surrogate at character {error.start}") from None
    if _SURROGATE_ESCAPE.search(text) is None:
        return
    for escape in _ESCAPE.finditer(text):
        if escape["lone"]:
            raise _LossyError(f"has a lone surrogate at character {escape.start()}")


def _require_depth(text: str, limit: int) -> None:
    """Raise _LossyError where brackets nest over the limit. Needs no stack."""
    if text.count("[") + text.count("{") <= limit:
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        token = found[0]
        if token in "[{":
            depth += 1
            if depth > limit:
                raise _LossyError(f"nests deeper than {limit} at character {found.start()}")
        elif token in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(a for a, b in pairwise(keys) if a == b)
        raise _LossyError(f"has the key {twice[:80]!r} twice in one object")
    return made


def _no_constant(name: str) -> object:
    raise _LossyError(f"has {name}, which is not JSON")


def _number(token: str) -> str:
    # Not the built-in method: a function of ours lets other threads go on between two numbers.
    return _MARK + token


_READER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_number,
    parse_float=_number,
    parse_constant=_no_constant,
)
_WRITER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
)
