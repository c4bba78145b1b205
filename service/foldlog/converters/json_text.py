"""JSON values and their text: strict on the way in, exact both ways."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NoReturn, TypeAlias

from foldlog.core.errors import InvalidFieldError

JsonObject: TypeAlias = dict[str, object]

# A request's limit: it leaves the log's free JSON (128) room for the objects we wrap values in.
DEPTH_LIMIT = 100
# Python turns no larger integer into text unless told to.
INTEGER_DIGITS_LIMIT = 4300


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} has no place in JSON")


_WRITER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
_READER = json.JSONDecoder(parse_constant=_refuse_constant)


def dumps(value: object) -> str:
    """Return the JSON text of a value that `copied` or `loads` returned, members in order."""
    return _WRITER.encode(value)


def loads(text: str, path: str) -> object:
    """Return the value of a JSON text, raising InvalidFieldError that names the path."""
    try:
        value = _READER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError.of(path, f"is not JSON: {error}") from error
    return copied(value, path)


def loads_object(text: str, path: str) -> JsonObject:
    """Return the object of a JSON text, raising InvalidFieldError if it is none."""
    return require_object(loads(text, path), path)


def require_object(value: object, path: str) -> JsonObject:
    """Return the value, raising InvalidFieldError unless it is an object."""
    if isinstance(value, dict):
        return value
    raise InvalidFieldError.of(path, f"must be an object, not {_kind(value)}")


def require_text(value: object, path: str) -> str:
    """Return the value, raising InvalidFieldError unless it is a string."""
    if isinstance(value, str):
        return value
    raise InvalidFieldError.of(path, f"must be a string, not {_kind(value)}")


def require_objects(value: object, path: str) -> list[tuple[JsonObject, str]]:
    """Return the objects of a list, each with its path; InvalidFieldError unless it is one."""
    if not isinstance(value, list):
        raise InvalidFieldError.of(path, f"must be a list, not {_kind(value)}")
    paths = [f"{path}[{index}]" for index in range(len(value))]
    return [(require_object(item, at), at) for item, at in zip(value, paths, strict=True)]


def require_request(request: Mapping[str, object]) -> JsonObject:
    """Return a copy of the request that shares nothing; InvalidFieldError unless it is JSON."""
    if not isinstance(request, Mapping):
        raise InvalidFieldError.of("request", f"must be an object, not {_kind(request)}")
    return {_key(key, "request"): copied(value, key, 1) for key, value in request.items()}


def copied(value: object, path: str, depth: int = 0) -> object:
    """Return a copy in plain dict, list, str, int, float, bool and None.

    Raises InvalidFieldError, naming the path, for what lossless JSON cannot carry: NaN, infinity,
    lone surrogates, keys that are not strings, other types, deeper nesting than DEPTH_LIMIT.
    """
    if depth > DEPTH_LIMIT:
        raise InvalidFieldError.of(path, f"is nested deeper than {DEPTH_LIMIT}")
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, path)
        case int():
            return _integer(value, path)
        case float():
            return _number(value, path)
        case list():
            return [copied(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
        case dict():
            keyed = ((_key(key, path), item) for key, item in value.items())
            return {key: copied(item, f"{path}.{key}", depth + 1) for key, item in keyed}
    raise InvalidFieldError.of(path, f"{_kind(value)} has no place in JSON")


def _text(value: str, path: str) -> str:
    try:
        return value.encode().decode()
    except UnicodeEncodeError as error:
        raise InvalidFieldError.of(path, "holds a lone surrogate") from error


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise InvalidFieldError.of(path, f"has a key that is no string: {key!r}")
    return _text(key, path)


def _integer(value: int, path: str) -> int:
    # A digit takes more than three bits, so that smaller numbers need no look.
    if value.bit_length() > 3 * INTEGER_DIGITS_LIMIT and abs(value) >= 10**INTEGER_DIGITS_LIMIT:
        raise InvalidFieldError.of(path, f"has more than {INTEGER_DIGITS_LIMIT} digits")
    return int(value)


def _number(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise InvalidFieldError.of(path, f"{value!r} has no place in JSON")
    return float(value)


def _kind(value: object) -> str:
    return type(value).__name__
