"""Items of an OpenAI Responses request, and the message that one or several of them become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

from foldlog.converters.blocks import Content
from foldlog.converters.json_text import JsonObject, dumps, require_text
from foldlog.converters.residue import hints_of, members, restored, with_difference, with_hints
from foldlog.converters.responses_natural import (
    CALLS,
    DIALECT,
    NAME,
    OUTPUTS,
    ROLES,
    kind_of_call,
    natural_items,
)
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
    """Return whether one message can hold both items: the model put them out, the seam stays."""
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
    calls = enumerate(message.tool_calls)
    return {call.id: kind_of_call(kinds, index) for index, call in calls if call.id is not None}


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
