"""OpenAI Chat Completions requests, from and to messages and a header.

Every provider message becomes one message. A developer message is a system message that remembers
it; a refusal, an audio answer and an old-style function call stand among the parts, since the model
sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from foldlog.converters.blocks import Content, Dialect, seen_fields
from foldlog.converters.converted import Converted
from foldlog.converters.json_text import (
    JsonObject,
    require_object,
    require_objects,
    require_request,
    require_text,
)
from foldlog.converters.request import RequestShape
from foldlog.converters.residue import hints_of, members, restored, with_difference, with_hints
from foldlog.converters.tool_calls import CallShape, CallShapes
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Role, ToolCall, ToolCallPart

name: Final = "openai_chat"
version: Final = "1"

DIALECT = Dialect(
    "openai",
    text_types=frozenset({"text"}),
    image=lambda image: {"type": "image_url", "image_url": {"url": image.url}},
)
SHAPE = RequestShape(name, messages="messages", effort=("reasoning_effort",))
CALLS = CallShapes(
    id="id",
    shapes={
        "function": CallShape(body="function", arguments="arguments"),
        "custom": CallShape(body="custom", arguments="input"),
    },
)
ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
ROLE_NAMES = {role.value: text for text, role in ROLES.items() if text != "developer"}
# Fields of a message that the model sees and that are no content.
SEEN_FIELDS = ("refusal", "audio", "function_call")
# Where compatible servers keep the reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")


def from_request(request: Mapping[str, object]) -> Converted:
    """Return the request in the log's terms.

    Raises InvalidFieldError, naming the path, for what is malformed or what the log cannot hold.
    """
    given = require_request(request)
    originals = require_objects(given.get(SHAPE.messages), SHAPE.messages)
    messages = tuple(message_of(original, path) for original, path in originals)
    return Converted(messages, header=SHAPE.header_of(given))


def to_request(converted: Converted) -> dict[str, object]:
    """Return the request. Equal to the original where the messages came from one.

    A system prompt of the header leads, unless the first message says the same.
    """
    numbered = enumerate(converted.messages)
    messages: list[object] = [provider_message(m, f"messages[{index}]") for index, m in numbered]
    prompt = {"role": "system", "content": converted.header.system_prompt}
    if prompt["content"] and messages[:1] != [prompt]:
        messages.insert(0, prompt)
    return SHAPE.request_of(converted.header, messages, more_system=[])


def message_of(original: JsonObject, path: str) -> Message:
    """Return one provider message in the log's terms."""
    calls, hints = _calls_of(original, path)
    content, fields = _content_of(original, path), seen_fields(original, SEEN_FIELDS)
    if fields and isinstance(content, str):
        hints["text"] = True
    reasoning, hints = _reasoning_of(original, hints)
    message = Message(
        role=_role_of(original, path),
        content=DIALECT.with_fields(content, fields),
        tool_calls=calls,
        tool_call_id=_optional_text(original, "tool_call_id"),
        name=_optional_text(original, "name"),
        reasoning=reasoning,
    )
    natural = _natural(message, hints, path)
    return with_hints(message, name, with_difference(hints, natural, original))


def _role_of(original: JsonObject, path: str) -> Role:
    text = require_text(original.get("role"), f"{path}.role")
    if text not in ROLES:
        raise InvalidFieldError.of(f"{path}.role", f"{text!r} is no role the log can hold")
    if text == "tool" and not isinstance(original.get("tool_call_id"), str):
        raise InvalidFieldError.of(
            f"{path}.tool_call_id", "must be a string: the log holds no tool result without one"
        )
    return ROLES[text]


def _content_of(original: JsonObject, path: str) -> Content:
    return DIALECT.content_of(original.get("content"), f"{path}.content")


def _calls_of(original: JsonObject, path: str) -> tuple[tuple[ToolCall, ...], JsonObject]:
    if original.get("tool_calls") is None:
        return (), {}
    originals = require_objects(original["tool_calls"], f"{path}.tool_calls")
    found = [CALLS.call_of(call) for call, _ in originals]
    kinds = {str(i): kind for i, (_, kind) in enumerate(found) if kind != CALLS.default}
    return tuple(call for call, _ in found), {"calls": kinds} if kinds else {}


def _reasoning_of(original: JsonObject, hints: JsonObject) -> tuple[str | None, JsonObject]:
    for field in REASONING_FIELDS:
        value = original.get(field)
        if isinstance(value, str):
            return value, {**hints, "reasoning": field}
    return None, hints


def _optional_text(original: JsonObject, field: str) -> str | None:
    value = original.get(field)
    return value if isinstance(value, str) else None


def provider_message(message: Message, path: str) -> JsonObject:
    """Return one message in the provider's terms."""
    hints = hints_of(message, name)
    return require_object(restored(_natural(message, hints, path), hints), path)


def _natural(message: Message, hints: JsonObject, path: str) -> JsonObject:
    content, fields = DIALECT.without_fields(
        message.content, bool(hints.get("text")), f"{path}.content"
    )
    result: JsonObject = {"role": _role_name(message, path)}
    if message.tool_call_id is not None:
        result["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        result["name"] = message.name
    result["content"] = _natural_content(content, f"{path}.content")
    if message.reasoning is not None and isinstance(hints.get("reasoning"), str):
        result[str(hints["reasoning"])] = message.reasoning
    result |= fields
    if message.tool_calls:
        result["tool_calls"] = _natural_calls(message, members(hints, "calls"), path)
    return result


def _natural_content(content: Content, path: str) -> object:
    if not isinstance(content, tuple):
        return content
    # Calls stand in a member of their own here, whatever their place among the parts.
    said = [(i, part) for i, part in enumerate(content) if not isinstance(part, ToolCallPart)]
    found = [block for i, part in said for block in DIALECT.blocks(part, "text", f"{path}[{i}]")]
    return found if found or not content else None


def _natural_calls(message: Message, kinds: JsonObject, path: str) -> list[object]:
    return [
        CALLS.natural(call, str(kinds.get(str(i), CALLS.default)), f"{path}.tool_calls[{i}]")
        for i, call in enumerate(message.tool_calls)
    ]


def _role_name(message: Message, path: str) -> str:
    if message.role in ROLE_NAMES:
        return ROLE_NAMES[message.role]
    raise InvalidFieldError.of(f"{path}.role", f"{message.role} is no role of this provider")
