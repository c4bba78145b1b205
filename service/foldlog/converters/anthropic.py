"""Anthropic Messages requests, from and to messages and a header.

A user message that holds tool results becomes one tool message per result and a user message per run of
other blocks, tied by a group. A tool_use's input becomes JSON text, its place kept among the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from foldlog.converters.blocks import Content, Dialect, call_at, seen_fields, unplaced_calls
from foldlog.converters.converted import Converted
from foldlog.converters.difference import difference, patched
from foldlog.converters.json_text import (
    JsonObject,
    dumps,
    loads,
    require_object,
    require_objects,
    require_request,
    require_text,
)
from foldlog.converters.request import RequestShape
from foldlog.converters.residue import hints_of, members, restored, with_difference, with_hints
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Part, Role, TextPart, ToolCall, ToolCallPart

name: Final = "anthropic"
version: Final = "1"

DIALECT = Dialect(
    "anthropic",
    text_types=frozenset({"text"}),
    reasoning_types=frozenset({"thinking", "redacted_thinking"}),
)
SHAPE = RequestShape(name, messages="messages", effort=("output_config", "effort"), system="system")
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
ROLE_NAMES = {
    Role.USER: "user",
    Role.ASSISTANT: "assistant",
    Role.SYSTEM: "system",
    Role.TOOL: "user",
}
# Fields of a tool result that the model sees and that are no content.
SEEN_FIELDS = ("is_error",)


def from_request(request: Mapping[str, object]) -> Converted:
    """Return the request in the log's terms.

    Raises InvalidFieldError, naming the path, for what is malformed or what the log cannot hold.
    """
    plain = require_request(request)
    originals = require_objects(plain.get(SHAPE.messages), SHAPE.messages)
    found = [_messages_of(original, path) for original, path in originals]
    groups = tuple(group for messages, group in found for _ in messages)
    messages = tuple(message for messages, _ in found for message in messages)
    return Converted(messages, groups, SHAPE.header_of(plain))


def to_request(converted: Converted) -> dict[str, object]:
    """Return the request. Equal to the original where the messages came from one.

    Of messages logged natively, results that follow one another share one user message, as the
    provider asks for, and system messages join the system prompt.
    """
    pieces = [
        _Piece(message, hints_of(message, name), f"messages[{index}]", group)
        for index, (message, group) in enumerate(
            zip(converted.messages, converted.groups, strict=True)
        )
    ]
    prompts = [text for piece in pieces if piece.is_prompt for text in _prompt_texts(piece)]
    runs = _runs([piece for piece in pieces if not piece.is_prompt])
    messages: list[object] = [_provider_message(run) for run in runs]
    return SHAPE.request_of(converted.header, messages, prompts)


def _messages_of(original: JsonObject, path: str) -> tuple[list[Message], str | None]:
    """Return the messages of one provider message, and their group if results are among them."""
    role, content = _role_of(original, path), original.get("content")
    frame = difference(
        {"role": original["role"], "content": None},
        {**original, "content": None} if "content" in original else original,
    )
    group = _group_of(content) if role == Role.USER else None
    if group is None:
        found = [_said(role, content, f"{path}.content")]
    else:
        found = _split(content, f"{path}.content")
    first = found[0][1]
    first |= {"frame": frame} if frame else {}
    # A system message without hints would join the system prompt, a group without go on the last.
    first |= {"first": True} if group is not None or role == Role.SYSTEM else {}
    return [with_hints(message, name, hints) for message, hints in found], group


def _role_of(original: JsonObject, path: str) -> Role:
    text = require_text(original.get("role"), f"{path}.role")
    if text in ROLES:
        return ROLES[text]
    raise InvalidFieldError.of(f"{path}.role", f"{text!r} is no role the log can hold")


def _group_of(content: object) -> str | None:
    """Return a group named after the first tool result, or None if there is none."""
    blocks = content if isinstance(content, list) else []
    results = (block for block in blocks if _is_result(block))
    return next((f"tool_results:{block.get('tool_use_id')}" for block in results), None)


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _split(content: object, path: str) -> list[tuple[Message, JsonObject]]:
    blocks = require_objects(content, path)
    found: list[tuple[Message, JsonObject]] = []
    for is_result, run in groupby(blocks, key=lambda pair: _is_result(pair[0])):
        if is_result:
            found += [_result_of(block, at) for block, at in run]
        else:
            found.append(_said_in_blocks(Role.USER, list(run), path))
    return found


def _result_of(block: JsonObject, path: str) -> tuple[Message, JsonObject]:
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


def _said(role: Role, content: object, path: str) -> tuple[Message, JsonObject]:
    if content is not None and not isinstance(content, str):
        return _said_in_blocks(role, require_objects(content, path), path)
    message = Message(role, content)
    return message, with_difference({}, _natural_content(message, path), content)


def _said_in_blocks(
    role: Role, blocks: list[tuple[JsonObject, str]], path: str
) -> tuple[Message, JsonObject]:
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block, at in blocks:
        if role == Role.ASSISTANT and _is_call(block):
            parts.append(ToolCallPart(len(calls)))
            calls.append(_call_of(block))
        else:
            parts.append(DIALECT.part_of(block, at))
    message = Message(role, folded(parts), tuple(calls))
    return message, with_difference({}, _natural_content(message, path), [b for b, _ in blocks])


def folded(parts: list[Part]) -> Content:
    """Return the parts in the form a worker logs natively where that says the same.

    Calls alone are no content, and a text before calls is a text.
    """
    said = [part for part in parts if not isinstance(part, ToolCallPart)]
    if not parts or not isinstance(parts[-1], ToolCallPart):
        return tuple(parts)
    if not said:
        return None
    if said == parts[:1] and isinstance(parts[0], TextPart) and parts[0].text:
        return parts[0].text
    return tuple(parts)


def _is_call(block: JsonObject) -> bool:
    texts = (block.get("id", ""), block.get("name", ""))
    return block.get("type") == "tool_use" and all(isinstance(text, str) for text in texts)


def _call_of(block: JsonObject) -> ToolCall:
    call_id, name_ = block.get("id"), block.get("name")
    return ToolCall(
        id=call_id if isinstance(call_id, str) else None,
        name=name_ if isinstance(name_, str) else None,
        arguments=dumps(block["input"]) if "input" in block else None,
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A message on its way into a provider message."""

    message: Message
    hints: JsonObject
    path: str
    group: str | None

    @property
    def is_prompt(self) -> bool:
        """Whether it goes into the system prompt: the provider's own system messages stay."""
        return self.message.role == Role.SYSTEM and not self.hints

    @property
    def is_result(self) -> bool:
        return self.message.role == Role.TOOL

    def continues(self, before: _Piece) -> bool:
        """Whether both stand in one provider message."""
        roles = {ROLE_NAMES.get(self.message.role), ROLE_NAMES.get(before.message.role)}
        if roles != {"user"} or "first" in self.hints:
            return False
        if self.group is not None or before.group is not None:
            return self.group == before.group
        return self.is_result and before.is_result


def _prompt_texts(piece: _Piece) -> list[str]:
    content = piece.message.content
    if not isinstance(content, tuple):
        return [content] if content else []
    for index, part in enumerate(content):
        if not isinstance(part, TextPart):
            raise InvalidFieldError.of(
                f"{piece.path}.content[{index}]", "a system prompt holds texts only"
            )
    return [part.text for part in content if isinstance(part, TextPart)]


def _runs(pieces: list[_Piece]) -> Iterator[list[_Piece]]:
    """Split the pieces into those of one provider message each."""
    run: list[_Piece] = []
    for piece in pieces:
        if run and not piece.continues(run[-1]):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _provider_message(run: list[_Piece]) -> JsonObject:
    first = run[0]
    if first.message.role not in ROLE_NAMES:
        raise InvalidFieldError.of(f"{first.path}.role", f"{first.message.role} is no known role")
    content: object = [block for piece in run for block in _blocks_of(piece)]
    if len(run) == 1 and not first.is_result:
        content = _content_value(first)
    natural = {"role": ROLE_NAMES[Role(first.message.role)], "content": content}
    return require_object(patched(natural, first.hints.get("frame")), first.path)


def _blocks_of(piece: _Piece) -> list[object]:
    if piece.is_result:
        return [restored(_natural_result(piece.message, piece.hints, piece.path), piece.hints)]
    value = _content_value(piece)
    if isinstance(value, list):
        return value
    return [{"type": "text", "text": value}] if value else []


def _content_value(piece: _Piece) -> object:
    return restored(_natural_content(piece.message, f"{piece.path}.content"), piece.hints)


def _natural_result(message: Message, hints: JsonObject, path: str) -> JsonObject:
    is_text = bool(hints.get("text"))
    content, fields = DIALECT.without_fields(message.content, is_text, f"{path}.content")
    result: JsonObject = {"type": "tool_result", "tool_use_id": message.tool_call_id}
    if isinstance(content, tuple):
        parts = enumerate(content)
        result["content"] = [
            b for i, p in parts for b in _blocks(message, p, f"{path}.content[{i}]")
        ]
    elif content is not None:
        result["content"] = content
    return result | fields


def _natural_content(message: Message, path: str) -> object:
    content = message.content
    if isinstance(content, str) and not message.tool_calls:
        return content
    parts: tuple[Part, ...] = content if isinstance(content, tuple) else ()
    if isinstance(content, str) and content:
        parts = (TextPart(content),)
    parts += tuple(ToolCallPart(index) for index in unplaced_calls(message))
    return [b for i, part in enumerate(parts) for b in _blocks(message, part, f"{path}[{i}]")]


def _blocks(message: Message, part: Part, path: str) -> list[object]:
    if isinstance(part, ToolCallPart):
        return [_natural_call(call_at(message, part, path), path)]
    return DIALECT.blocks(part, "text", path)


def _natural_call(call: ToolCall, path: str) -> JsonObject:
    block: JsonObject = {"type": "tool_use"}
    block |= {} if call.id is None else {"id": call.id}
    block |= {} if call.name is None else {"name": call.name}
    return block | {"input": loads(call.arguments or "{}", f"{path}.input")}
