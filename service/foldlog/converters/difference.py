"""What tells one JSON value from another, as JSON: the part of a request no field has a place for.

A converter lifts what it understands into fields, renders the natural form of those fields, and
keeps the difference between that form and the original. Nothing can get lost: whatever was not
lifted is in the difference. Order of keys counts, and so does 1 against 1.0.

A difference is None (the values are the same) or an object:
    {"is": value}                          the whole value, where the types differ
    {"in": {key or index: difference}}     members that differ
    {"drop": [key, ...]}                   members only the natural form has
    {"set": {key: value}}                  members only the original has
    {"keys": {key: 0, ...}}                the order of members, where it is not the natural one
The order is an object, so that canonical JSON, where order of members is nothing, does not see it.
"""

from __future__ import annotations

from foldlog.converters.json_text import JsonObject


def is_same(first: object, second: object) -> bool:
    """Return whether two JSON values serialise to the same bytes."""
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first) == list(second) and all(is_same(first[k], second[k]) for k in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return repr(first) == repr(second)  # 0.0 == -0.0
    return type(first) is type(second) and first == second  # True == 1 == 1.0


def difference(natural: object, original: object) -> JsonObject | None:
    """Return what makes the original of the natural form, or None if they are the same."""
    if is_same(natural, original):
        return None
    if isinstance(natural, dict) and isinstance(original, dict):
        return _object_difference(natural, original)
    if isinstance(natural, list) and isinstance(original, list) and len(natural) == len(original):
        return {"in": _inner(dict(_numbered(natural)), dict(_numbered(original)))}
    return {"is": original}


def _object_difference(natural: JsonObject, original: JsonObject) -> JsonObject:
    added = {key: value for key, value in original.items() if key not in natural}
    found: JsonObject = {
        "in": _inner(natural, original),
        "drop": [key for key in natural if key not in original],
        "set": added,
    }
    if [key for key in natural if key in original] + list(added) != list(original):
        found["keys"] = dict.fromkeys(original, 0)
    return {name: value for name, value in found.items() if value}


def _inner(natural: JsonObject, original: JsonObject) -> JsonObject:
    both = (
        (key, difference(value, original[key])) for key, value in natural.items() if key in original
    )
    return {key: found for key, found in both if found is not None}


def patched(natural: object, found: object) -> object:
    """Return the original again. A difference that no longer fits is applied as far as it does."""
    if not isinstance(found, dict):
        return natural
    if "is" in found:
        return found["is"]
    if isinstance(natural, dict):
        return _patched_object(natural, found)
    if isinstance(natural, list):
        inner = _members(found, "in")
        return [patched(value, inner.get(number)) for number, value in _numbered(natural)]
    return natural


def _patched_object(natural: JsonObject, found: JsonObject) -> JsonObject:
    inner, dropped = _members(found, "in"), found.get("drop")
    gone = dropped if isinstance(dropped, list) else []
    result = {k: patched(value, inner.get(k)) for k, value in natural.items() if k not in gone}
    result |= _members(found, "set")
    ordered = [key for key in _members(found, "keys") if key in result]
    return {key: result[key] for key in [*ordered, *result]}


def _members(found: JsonObject, name: str) -> JsonObject:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _numbered(values: list[object]) -> list[tuple[str, object]]:
    return [(str(number), value) for number, value in enumerate(values)]
