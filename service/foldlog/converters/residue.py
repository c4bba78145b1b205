"""The part of a provider message that lies in a message's metadata: hints and a difference.

The metadata object has one member per provider, such as {"foldlog.anthropic": {...}}. A hint tells
the natural form which of two spellings was used; the difference holds what the fields have no place
for. A message without such a member was logged natively and takes the provider's natural form.
"""

from __future__ import annotations

import json
from dataclasses import replace

from foldlog.converters.difference import difference, patched
from foldlog.converters.json_text import JsonObject, dumps
from foldlog.core.header import CONVERTER_PREFIX
from foldlog.core.message import Message


def member_of(provider: str) -> str:
    """Return the name of a provider's member, in metadata and in a header's parameters."""
    return CONVERTER_PREFIX + provider


def with_hints(message: Message, provider: str, hints: JsonObject) -> Message:
    """Return the message with the provider's hints as its metadata, or none if there are none."""
    if not hints:
        return message
    return replace(message, metadata_json=dumps({member_of(provider): hints}))


def hints_of(message: Message, provider: str) -> JsonObject:
    """Return the provider's hints in the metadata; empty if it has none."""
    # Metadata is the writer's own: whatever is not ours is not looked at.
    if message.metadata_json is None or member_of(provider) not in message.metadata_json:
        return {}
    try:
        metadata = json.loads(message.metadata_json)
    except (ValueError, RecursionError):
        return {}
    hints = metadata.get(member_of(provider)) if isinstance(metadata, dict) else None
    return hints if isinstance(hints, dict) else {}


def with_difference(hints: JsonObject, natural: object, original: object) -> JsonObject:
    """Return the hints with what makes the original of its natural form, if they differ."""
    found = difference(natural, original)
    return hints if found is None else {**hints, "difference": found}


def restored(natural: object, hints: JsonObject) -> object:
    """Return the original that hints with a difference describe."""
    return patched(natural, hints.get("difference"))


def members(hints: JsonObject, name: str) -> JsonObject:
    """Return the object under a name of the hints; empty if it has none."""
    value = hints.get(name)
    return value if isinstance(value, dict) else {}
