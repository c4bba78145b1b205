"""Items of an OpenAI Responses request, and the message that one or several of them become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, groupby
from typing import Final

from foldlog.converters.blocks import Content, Dialect, call_at, unplaced_calls
from foldlog.converters.json_text import JsonObject, dumps, loads_object, require_text
from foldlog.converters.residue import hints_of, members, restored, with_difference, with_hints
from foldlog.converters.tool_calls import CallShape, CallShapes
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import (
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
)

NAME: Final = "openai_responses"

DIALECT = Dialect(NAME, text_types=frozenset({"input_text", "output_text", "text"}))
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
ROLE_NAMES = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "assistant"}
# Items without a call_id that the client, not the model, puts in.
CLIENT_SUFFIXES = ("_output", "_response")

Item = tuple[JsonObject, str]


def type_of(item: JsonObject, path: str) -> str:
    """Return the type of an item; one that has a role and no type is a message."""
    if "type" not in item and "role" in item:
        return "message"
    return require_text(item.get("type"), f"{path}.type")


def is_put_out(item: JsonObject, path: str) -> bool:
    """Return whether the model put the item out, as far as its type and role tell."""
    kind = type_of(item, path)
    if kind == "message":
        return role_of(item, path) == Role.ASSISTANT
    return not kind.endswith(CLIENT_SUFFIXES)


def role_of(item: JsonObject, path: str) -> Role:
    """Return the role of a message item, raising InvalidFieldError if the log has none for it."""
    text = require_text(item.get("role"), f"{path}.role")
    if text in ROLES:
        return ROLES[text]
    raise InvalidFieldError.of(f"{path}.role", f"{text!r} is no role the log can hold")


def is_continued(before: Item, after: Item) -> bool:
    """Return whether one message can hold both items: the model put both out, their seam is not lost."""
    if not (is_put_out(*before) and is_put_out(*after)):
        return False
    said = [item for item in (before, after) if type_of(*item) == "message"]
    return len(said) < 2 and not any(item.get("content") in (None, []) for item, _ in said)


def message_of(run: Sequence[Item], kinds: Mapping[str, str]) -> Message:
    """Return the message that one item, or a run of items the model put out, becomes.

    `kinds` are those of the calls before it, by id.
    """
    item, path = run[0]
    if is_put_out(item, path):
        message, hints = _put_out(run)
    elif type_of(item, path) == "message":
        content = DIALECT.content_of(item.get("content"), f"{path}.content")
        message, hints = Message(role_of(item, path), content), {}
    else:
        message, hints = _put_in(item, path, kinds)
    natural = natural_items(message, hints, path)
    return with_hints(message, NAME, with_difference(hints, natural, [item for item, _ in run]))


def _put_in(item: JsonObject, path: str, kinds: Mapping[str, str]) -> tuple[Message, JsonObject]:
    kind, call_id = type_of(item, path), item.get("call_id")
    if kind in OUTPUTS.values():
        return _output_of(item, kind, path, kinds)
    if kind.endswith("_output") and isinstance(call_id, str):
        rest = {key: value for key, value in item.items() if key != "call_id"}
        return Message(Role.TOOL, (_opaque(kind, rest),), tool_call_id=call_id), {}
    return Message(Role.USER, (_opaque(kind, item),)), {}


def _output_of(
    item: JsonObject, kind: str, path: str, kinds: Mapping[str, str]
) -> tuple[Message, JsonObject]:
    call_id = item.get("call_id")
    if not isinstance(call_id, str):
        raise InvalidFieldError.of(
            f"{path}.call_id", "must be a string: the log holds no tool result without one"
        )
    content = DIALECT.content_of(item.get("output"), f"{path}.output")
    message = Message(Role.TOOL, content, tool_call_id=call_id)
    is_natural = {kind, _output_type(message, kinds)} == {OUTPUTS[CALLS.default]}
    return message, {} if is_natural else {"output": kind}


def _output_type(message: Message, kinds: Mapping[str, str]) -> str:
    kind = kinds.get(message.tool_call_id or "", CALLS.default)
    return OUTPUTS.get(kind, OUTPUTS[CALLS.default])


def kinds_of_calls(message: Message) -> dict[str, str]:
    """Return the kind of each call of a message by its id."""
    kinds = members(hints_of(message, NAME), "calls")
    ids = [call.id for call in message.tool_calls]
    return {
        id_: str(kinds.get(str(i), CALLS.default)) for i, id_ in enumerate(ids) if id_ is not None
    }


def items_of(message: Message, kinds: Mapping[str, str], path: str) -> list[object]:
    """Return the items of a message. `kinds` are those of the calls before it, by id."""
    hints = hints_of(message, NAME)
    if not hints and message.role == Role.TOOL:
        hints = {"output": _output_type(message, kinds)}
    items = restored(natural_items(message, hints, path), hints)
    return items if isinstance(items, list) else [items]


def bare_text(text: str) -> Message:
    """Return the user message that an input given as one text becomes."""
    return with_hints(Message(Role.USER, text), NAME, {"bare": True})


def is_bare(message: Message) -> bool:
    """Return whether the message was an input given as one text."""
    return bool(hints_of(message, NAME).get("bare")) and isinstance(message.content, str)


def _put_out(run: Sequence[Item]) -> tuple[Message, JsonObject]:
    typed = [(item, type_of(item, path)) for item, path in run]
    calls = [CALLS.call_of(item) for item, kind in typed if _is_call(item, kind)]
    kinds = {str(i): kind for i, (_, kind) in enumerate(calls) if kind != CALLS.default}
    texts = {str(i): True for i, item in enumerate(run) if _text_of(item) is not None}
    content = _native_form(run, _parts_of(run))
    hints: JsonObject = {"calls": kinds} if kinds else {}
    if texts and isinstance(content, tuple):
        hints["texts"] = texts
    return Message(Role.ASSISTANT, content, tuple(call for call, _ in calls)), hints


def _native_form(run: Sequence[Item], parts: tuple[Part, ...]) -> Content:
    """Return the parts as a worker logs them natively, where that says the same.

    Calls alone are no content, and a message given as a text, with calls behind or not, is a text.
    """
    text = _text_of(run[0])
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    if calls and len(calls) == len(parts):
        return None
    if text is not None and len(calls) == len(parts) - 1:
        return text
    return parts if parts or run[0][0].get("content") == [] else None


def _text_of(item: Item) -> str | None:
    content = item[0].get("content")
    return content if isinstance(content, str) and type_of(*item) == "message" else None


def _parts_of(run: Sequence[Item]) -> tuple[Part, ...]:
    parts: list[Part] = []
    call_indexes = count()
    for item, path in run:
        kind = type_of(item, path)
        if _is_call(item, kind):
            parts.append(ToolCallPart(next(call_indexes)))
        elif kind == "message":
            content = DIALECT.content_of(item.get("content"), f"{path}.content")
            parts += (TextPart(content),) if isinstance(content, str) else content or ()
        elif kind == "reasoning":
            parts.append(ReasoningPart(json=dumps(item)))
        else:
            parts.append(_opaque(kind, item))
    return tuple(parts)


def _is_call(item: JsonObject, kind: str) -> bool:
    return kind in CALLS.shapes or (kind.endswith("_call") and isinstance(item.get("call_id"), str))


def _opaque(kind: str, item: JsonObject) -> OpaquePart:
    return OpaquePart(f"{NAME}:{kind}", dumps(item))


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
    kind = str(kinds.get(str(index), CALLS.default))
    return CALLS.natural(message.tool_calls[index], kind, f"{path}.tool_calls[{index}]")


def _said_items(message: Message, hints: JsonObject, path: str) -> list[object]:
    """Return the items of the content, with the index of a call in its place."""
    role, content = ROLE_NAMES[Role(message.role)], message.content
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
    """Return what stands beside the messages: an item, a call's index, or nothing this API can read."""
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
    if not isinstance(content, tuple):
        kind = hints.get("output", OUTPUTS[CALLS.default])
        return {"type": kind, "call_id": call_id, "output": content or ""}
    if len(content) == 1 and isinstance(content[0], OpaquePart) and not _is_block(content[0]):
        return {"call_id": call_id, **loads_object(content[0].json, f"{path}[0]")}
    parts = ((part, f"{path}[{i}]") for i, part in enumerate(content))
    blocks = [block for part, at in parts for block in DIALECT.blocks(part, "input_text", at)]
    return {
        "type": hints.get("output", OUTPUTS[CALLS.default]),
        "call_id": call_id,
        "output": blocks,
    }
