"""Content of Anthropic messages: blocks said and results of tools, each one message of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from foldlog.converters.blocks import Content, Dialect, call_at, seen_fields, unplaced_calls
from foldlog.converters.json_text import JsonObject, dumps, loads, require_objects
from foldlog.converters.residue import restored, with_difference
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Part, Role, TextPart, ToolCall, ToolCallPart

NAME: Final = "anthropic"

DIALECT = Dialect(
    NAME,
    text_types=frozenset({"text"}),
    reasoning_types=frozenset({"thinking", "redacted_thinking"}),
    image=lambda image: {"type": "image", "source": image.source},
)
# Fields of a tool result that the model sees and that are no content.
SEEN_FIELDS = ("is_error",)

Block = tuple[JsonObject, str]
Hinted = tuple[Message, JsonObject]


def is_result(block: JsonObject) -> bool:
    """Return whether the block is the result of a tool call."""
    return block.get("type") == "tool_result"


def result_of(block: JsonObject, path: str) -> Hinted:
    """Return the tool message that a tool_result becomes, and its hints."""
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise InvalidFieldError.of(
            f"{path}.tool_use_id", "must be a string: the log holds no tool result without one"
        )
    content = DIALECT.content_of(block.get("content"), f"{path}.content")
    fields = seen_fields(block, SEEN_FIELDS)
    hints: JsonObject = {"text": True} if fields and isinstance(content, str) else {}
    message = Message(Role.TOOL, DIALECT.with_fields(content, fields), tool_call_id=call_id)
    return message, with_difference(hints, _natural_result(message, hints, path), block)


def said(role: Role, content: object, path: str) -> Hinted:
    """Return the message that a whole content becomes, and its hints."""
    if content is not None and not isinstance(content, str):
        return said_in_blocks(role, require_objects(content, path), path)
    message = Message(role, content)
    return message, with_difference({}, _natural_content(message, path), content)


def said_in_blocks(role: Role, blocks: Sequence[Block], path: str) -> Hinted:
    """Return the message that blocks become, and its hints."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block, at in blocks:
        if role == Role.ASSISTANT and _is_call(block):
            parts.append(ToolCallPart(len(calls)))
            calls.append(_call_of(block))
        else:
            parts.append(DIALECT.part_of(block, at))
    message = Message(role, _native_form(tuple(parts)), tuple(calls))
    return message, with_difference({}, _natural_content(message, path), [b for b, _ in blocks])


def _native_form(parts: tuple[Part, ...]) -> Content:
    """Return the parts as a worker logs them natively, where that says the same.

    Calls alone are no content, and a text before nothing but calls is a text.
    """
    calls = sum(isinstance(part, ToolCallPart) for part in parts)
    if calls and calls == len(parts):
        return None
    if calls and calls == len(parts) - 1 and isinstance(parts[0], TextPart) and parts[0].text:
        return parts[0].text
    return parts


def _is_call(block: JsonObject) -> bool:
    texts = (block.get("id", ""), block.get("name", ""))
    return block.get("type") == "tool_use" and all(isinstance(text, str) for text in texts)


def _call_of(block: JsonObject) -> ToolCall:
    call_id, name = block.get("id"), block.get("name")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else None,
        name=name if isinstance(name, str) else None,
        arguments=dumps(block["input"]) if "input" in block else None,
    )


def result_block(message: Message, hints: JsonObject, path: str) -> object:
    """Return the tool_result of a tool message."""
    return restored(_natural_result(message, hints, path), hints)


def content_value(message: Message, hints: JsonObject, path: str) -> object:
    """Return the content of any other message: a text or a list of blocks."""
    return restored(_natural_content(message, path), hints)


def _natural_result(message: Message, hints: JsonObject, path: str) -> JsonObject:
    is_text = bool(hints.get("text"))
    content, fields = DIALECT.without_fields(message.content, is_text, f"{path}.content")
    result: JsonObject = {"type": "tool_result", "tool_use_id": message.tool_call_id}
    if isinstance(content, tuple):
        result["content"] = _blocks(message, content, path)
    elif content is not None:
        result["content"] = content
    return result | fields


def _natural_content(message: Message, path: str) -> object:
    content = message.content
    if isinstance(content, str) and not message.tool_calls:
        return content
    if isinstance(content, str):
        # The provider refuses an empty text among blocks.
        content = (TextPart(content),) if content else ()
    unplaced = [ToolCallPart(index) for index in unplaced_calls(message)]
    return _blocks(message, [*(content or ()), *unplaced], path)


def _blocks(message: Message, parts: Sequence[Part], path: str) -> list[object]:
    found: list[object] = []
    for index, part in enumerate(parts):
        at = f"{path}.content[{index}]"
        if isinstance(part, ToolCallPart):
            call = call_at(message, part, at)
            found.append(_natural_call(call, f"{path}.tool_calls[{part.index}]"))
        else:
            found += DIALECT.blocks(part, "text", at)
    return found


def _natural_call(call: ToolCall, path: str) -> JsonObject:
    block: JsonObject = {"type": "tool_use", "id": call.id, "name": call.name}
    block["input"] = loads(call.arguments or "{}", f"{path}.arguments")
    return {key: value for key, value in block.items() if value is not None or key == "input"}
