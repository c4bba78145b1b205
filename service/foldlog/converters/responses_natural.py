"""The items of an OpenAI Responses request that a message naturally takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from foldlog.converters.blocks import Dialect, call_at, unplaced_calls
from foldlog.converters.json_text import JsonObject, loads_object
from foldlog.converters.residue import members
from foldlog.converters.tool_calls import CallShape, CallShapes
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import (
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
)

NAME: Final = "openai_responses"

DIALECT = Dialect(
    NAME,
    text_types=frozenset({"input_text", "output_text", "text"}),
    image=lambda image: {"type": "input_image", "image_url": image.url, "detail": "auto"},
)
CALLS = CallShapes(
    id="call_id",
    shapes={
        "function_call": CallShape(arguments="arguments"),
        "custom_tool_call": CallShape(arguments="input"),
    },
)
# The type of the item that answers a kind of call; the first answers calls logged natively.
OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
ROLE_NAMES = {role.value: text for text, role in ROLES.items() if text != "developer"}


def natural_items(message: Message, hints: JsonObject, path: str) -> list[object]:
    """Return the items a message naturally takes."""
    if message.role == Role.TOOL:
        return [_natural_output(message, hints, f"{path}.content")]
    if message.role not in ROLE_NAMES:
        raise InvalidFieldError.of(f"{path}.role", f"{message.role} is no role of this provider")
    kinds = members(hints, "calls")
    found = _said_items(message, hints, f"{path}.content")
    return [
        _natural_call(message, item, kinds, path) if isinstance(item, int) else item
        for item in [*found, *unplaced_calls(message)]
    ]


def _natural_call(message: Message, index: int, kinds: JsonObject, path: str) -> JsonObject:
    call, kind = message.tool_calls[index], kind_of_call(kinds, index)
    return CALLS.natural(call, kind, f"{path}.tool_calls[{index}]")


def kind_of_call(kinds: JsonObject, index: int) -> str:
    """Return the kind of a call that the hints tell, or that of one logged natively."""
    return str(kinds.get(str(index), CALLS.default))


def _said_items(message: Message, hints: JsonObject, path: str) -> list[object]:
    """Return the items of the content, with the index of a call in its place."""
    role, content = ROLE_NAMES[message.role], message.content
    if not isinstance(content, tuple):
        is_silent = content is None and message.tool_calls
        return [] if is_silent else [{"role": role, "content": content or ""}]
    found: list[object] = [] if content else [{"role": role, "content": []}]
    numbered = ((part, f"{path}[{index}]") for index, part in enumerate(content))
    for is_block, run in groupby(numbered, key=lambda pair: _is_block(pair[0])):
        if is_block:
            is_text = str(len(found)) in members(hints, "texts")
            found.append({"role": role, "content": _said(role, list(run), is_text)})
        else:
            found += [item for part, at in run for item in _standing(message, part, at)]
    return found


def _is_block(part: Part) -> bool:
    if isinstance(part, OpaquePart):
        return not part.kind.startswith(f"{NAME}:")
    return not isinstance(part, ToolCallPart | ReasoningPart)


def _said(role: str, run: Sequence[tuple[Part, str]], is_text: bool) -> object:
    first, text_type = run[0][0], "output_text" if role == "assistant" else "input_text"
    if is_text and len(run) == 1 and isinstance(first, TextPart):
        return first.text
    return [block for part, at in run for block in DIALECT.blocks(part, text_type, at)]


def _standing(message: Message, part: Part, path: str) -> list[object]:
    """Return what stands beside the messages: an item, the index of a call, or nothing."""
    match part:
        case ToolCallPart(index):
            call_at(message, part, path)
            return [index]
        case ReasoningPart(json=str(text)):
            item = loads_object(text, path)
            return [item] if item.get("type") == "reasoning" else []
        case OpaquePart(_, text):
            return [loads_object(text, path)]
    return []


def _natural_output(message: Message, hints: JsonObject, path: str) -> JsonObject:
    call_id, content = message.tool_call_id, message.content
    known = {"type": hints.get("output", OUTPUTS[CALLS.default]), "call_id": call_id}
    if not isinstance(content, tuple):
        return {**known, "output": content or ""}
    if len(content) == 1 and isinstance(content[0], OpaquePart) and not _is_block(content[0]):
        return {"call_id": call_id, **loads_object(content[0].json, f"{path}[0]")}
    parts = ((part, f"{path}[{i}]") for i, part in enumerate(content))
    blocks = [block for part, at in parts for block in DIALECT.blocks(part, "input_text", at)]
    return {**known, "output": blocks}
