"""The bodies of a DeepSeek Harness session's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from foldlog.client.bodies import (
    Body,
    HeaderSnapshot,
    StepEnd,
    StepStart,
    ToolCallState,
    TurnEnd,
    TurnStart,
    Usage,
)
from foldlog.converters.blocks import ERROR_MARK
from foldlog.core.event import ToolCallPhase
from foldlog.core.header import Header, HeaderReason
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
from foldlog.importers.dsh_rows import is_count
from foldlog.importers.json_value import dumps, text_in

NAME: Final = "dsh"
# The mark that a result is an error, in the words that the converters know.
ERROR_PART: Final = OpaquePart("anthropic:fields", ERROR_MARK)
# Parts of a header's configuration that have fields of their own.
CONFIG_FIELDS: Final = ("provider", "model", "reasoningEffort")
REASONS: Final = {
    "initial": HeaderReason.INITIAL,
    "resume": HeaderReason.RESUME,
    "change": HeaderReason.CHANGE,
}
# Members of blocks that become fields, where they are of this type. Other blocks stay whole.
SAID: Final[Mapping[object, Mapping[str, type]]] = {
    "tool-call": {"id": str, "name": str, "arguments": str},
    "tool-result": {"toolCallId": str, "content": list, "isError": bool},
}
SURFACE_ROLES: Final = {"assistant/message": Role.ASSISTANT, "tool/result": Role.TOOL}
USAGE: Final = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}
Data = Mapping[str, Any]


def unsaid(blocks: list[Any]) -> dict[str, dict[str, Any]]:
    """Return, by the index of their block, members that a message has no word for."""
    found: dict[str, dict[str, Any]] = {}
    for index, block in enumerate(blocks):
        said = SAID.get(text_in(block, "type")) if isinstance(block, Mapping) else None
        if said is not None:
            rest = {name: value for name, value in block.items() if not _is_said(name, value, said)}
            found |= {str(index): rest} if rest else {}
    return found


def _is_said(name: str, value: object, said: Mapping[str, type]) -> bool:
    return name == "type" or (name in said and isinstance(value, said[name]))


def message_of(kind: str, data: Data) -> Message:
    """Return the message of a surface event. Raises ValueError, which says what is wrong."""
    message = data.get("message", data)
    blocks = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(blocks, list) or not all(isinstance(b, Mapping) for b in blocks):
        raise ValueError("its content is no list of blocks")
    role = SURFACE_ROLES.get(kind, Role.USER)
    if role == Role.TOOL:
        return _result(blocks, data)
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block in blocks:
        if block.get("type") == "tool-call" and role == Role.ASSISTANT:
            parts.append(ToolCallPart(len(calls)))
            calls.append(_call(block))
        else:
            parts.append(_part(block))
    return Message(role, tuple(parts), tuple(calls))


def _result(blocks: list[Data], data: Data) -> Message:
    """Return a result: one block around the content, or as older logs have it, the content."""
    block: Data = {"toolCallId": data.get("callId"), "isError": data.get("isError")}
    block = {**block, "content": blocks}
    if len(blocks) == 1 and blocks[0].get("type") == "tool-result":
        block = blocks[0]
    call_id, content = block.get("toolCallId"), block.get("content")
    if not isinstance(call_id, str):
        raise ValueError("its result names no call")
    if not isinstance(content, list) or not all(isinstance(b, Mapping) for b in content):
        raise ValueError("the content of its result is no list of blocks")
    parts = [_part(each) for each in content]
    if block.get("isError"):
        parts.append(ERROR_PART)
    return Message(Role.TOOL, tuple(parts), tool_call_id=call_id)


def _part(block: Data) -> Part:
    kind, text = block.get("type"), block.get("text")
    is_plain = isinstance(text, str) and block.keys() == {"type", "text"}
    if kind == "text" and is_plain:
        return TextPart(str(text))
    if kind == "reasoning":
        return ReasoningPart(text=str(text)) if is_plain else ReasoningPart(json=dumps(block))
    return OpaquePart(f"{NAME}.{kind}", dumps(block))


def _call(block: Data) -> ToolCall:
    return ToolCall(text_in(block, "id"), text_in(block, "name"), text_in(block, "arguments"))


def _number(data: Data, name: str) -> int | None:
    value = data.get(name)
    return value if is_count(value) else None


def _reason(data: Data) -> str | None:
    reason = data.get("reason")
    return text_in(reason, "kind") if isinstance(reason, Mapping) else text_in(data, "reason")


def _usage(data: Data) -> Usage | None:
    usage = data.get("usage")
    if not isinstance(usage, Mapping):
        return None
    return Usage(**{ours: _number(usage, theirs) for theirs, ours in USAGE.items()})


def _header(data: Data) -> Body | None:
    header, reason = data.get("header"), data.get("reason")
    config = header.get("config") if isinstance(header, Mapping) else None
    if not isinstance(header, Mapping) or not isinstance(config, Mapping):
        raise ValueError("its header has no configuration")
    if not isinstance(reason, str) or reason not in REASONS:
        raise ValueError(f"{reason!r} is no reason for a header")
    parameters = {name: value for name, value in config.items() if name not in CONFIG_FIELDS}
    tools = header.get("tools")
    return HeaderSnapshot(
        Header(
            provider=text_in(config, "provider") or "",
            model=text_in(config, "model") or "",
            parameters_json=dumps(parameters) if parameters else "",
            system_prompt=text_in(header, "system") or "",
            tools_json=tuple(map(dumps, tools)) if isinstance(tools, list) else (),
            reasoning_effort=text_in(config, "reasoningEffort") or "",
        ),
        REASONS[str(reason)],
    )


def _tool_call(data: Data) -> Body:
    arguments = text_in(data, "arguments")
    return ToolCallState(
        text_in(data, "callId"), text_in(data, "name"), arguments, phase=ToolCallPhase.DISPATCHED
    )


# Bookkeeping that the log has words for.
BODIES: Final[Mapping[str, Callable[[Data], Body | None]]] = {
    "turn/start": lambda data: TurnStart(_number(data, "turn"), _reason(data)),
    "turn/end": lambda data: TurnEnd(_number(data, "turn"), _reason(data), _usage(data)),
    "step/start": lambda data: StepStart(_number(data, "step"), _reason(data)),
    "step/end": lambda data: StepEnd(_number(data, "step"), _reason(data), _usage(data)),
    "tool/call": _tool_call,
    "request/header": _header,
}
