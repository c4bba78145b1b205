"""Malformed requests are refused, and the error names the path."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from foldlog.converters import anthropic, openai_chat, openai_responses, plain
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Role, ToolCall


def user(content: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


ALL = (openai_chat, openai_responses, anthropic)
OF_ALL = [
    pytest.param([], "request", id="no-mapping"),
    pytest.param({"x": float("nan")}, "x", id="nan"),
    pytest.param({"x": [{"y": float("-inf")}]}, "x[0].y", id="infinity"),
    pytest.param({"x": "\ud800"}, "x", id="lone-surrogate"),
    pytest.param({"x": {"\udfff": 1}}, "x", id="lone-surrogate-in-a-key"),
    pytest.param({"x": {1: 1}}, "x", id="key-no-string"),
    pytest.param({"x": (1,)}, "x", id="tuple"),
    pytest.param({"x": b"bytes"}, "x", id="bytes"),
    pytest.param({"x": 10**4300}, "x", id="integer-without-text"),
]


@pytest.mark.parametrize("provider", ALL, ids=lambda provider: provider.name)
@pytest.mark.parametrize(("request_", "path"), OF_ALL)
def test_what_is_no_lossless_json(provider: ModuleType, request_: Any, path: str) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        provider.from_request(request_)
    assert list(refusal.value.fields) == [path]


@pytest.mark.parametrize("provider", ALL, ids=lambda provider: provider.name)
def test_what_nests_too_deep(provider: ModuleType) -> None:
    with pytest.raises(InvalidFieldError, match="nested deeper than 100"):
        provider.from_request({"x": nested(10_000)})


@pytest.mark.parametrize(
    ("provider", "request_", "path"),
    [
        (openai_chat, {}, "messages"),
        (openai_chat, {"messages": None}, "messages"),
        (openai_chat, {"messages": {}}, "messages"),
        (openai_chat, {"messages": ["hi"]}, "messages[0]"),
        (openai_chat, {"messages": [{}]}, "messages[0].role"),
        (openai_chat, {"messages": [{"role": "function", "name": "f"}]}, "messages[0].role"),
        (openai_chat, {"messages": [{"role": None}]}, "messages[0].role"),
        (openai_chat, {"messages": [{"role": "tool"}]}, "messages[0].tool_call_id"),
        (
            openai_chat,
            {"messages": [{"role": "tool", "tool_call_id": 7}]},
            "messages[0].tool_call_id",
        ),
        (openai_chat, user(7), "messages[0].content"),
        (openai_chat, user({"type": "text"}), "messages[0].content"),
        (openai_chat, user(["hi"]), "messages[0].content[0]"),
        (openai_chat, user([{"text": "hi"}]), "messages[0].content[0].type"),
        (
            openai_chat,
            {"messages": [{"role": "assistant", "tool_calls": "no"}]},
            "messages[0].tool_calls",
        ),
        (
            openai_chat,
            {"messages": [{"role": "assistant", "tool_calls": [None]}]},
            "messages[0].tool_calls[0]",
        ),
        (anthropic, {"messages": "hi"}, "messages"),
        (anthropic, {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        (anthropic, user([{"type": "text", "text": "a"}, {}]), "messages[0].content[1].type"),
        (anthropic, user([{"type": "tool_result"}]), "messages[0].content[0].tool_use_id"),
        (
            anthropic,
            user([{"type": "tool_result", "tool_use_id": "c", "content": [{"type": 1}]}]),
            "messages[0].content[0].content[0].type",
        ),
        (openai_responses, {"input": 7}, "input"),
        (openai_responses, {"input": [{}]}, "input[0].type"),
        (openai_responses, {"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        (openai_responses, {"input": [{"type": "message"}]}, "input[0].role"),
        (openai_responses, {"input": [{"type": "function_call_output"}]}, "input[0].call_id"),
        (
            openai_responses,
            {"input": [{"role": "user", "content": [{"type": None}]}]},
            "input[0].content[0].type",
        ),
    ],
)
def test_what_has_not_the_form_of_a_request(
    provider: ModuleType, request_: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        provider.from_request(request_)
    assert list(refusal.value.fields) == [path]


def test_a_plain_list_of_messages() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    originals = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    messages = plain.from_messages(originals)
    assert messages == (
        Message(Role.USER, "hi"),
        Message(Role.ASSISTANT, None, (ToolCall("c", "f", "{}"),)),
        Message(Role.TOOL, "x", tool_call_id="c"),
    )
    assert plain.to_messages(messages) == originals
