"""Realistic requests: they come back, and what the model sees stands in fields that compare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from foldlog.converters import anthropic, openai_chat, openai_responses
from foldlog.core.header import Header, differing_fields
from foldlog.core.message import (
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
)

from tests.converters import recorded

RECORDED = [
    pytest.param(openai_chat, recorded.CHAT_CODING_AGENT, id="chat"),
    pytest.param(openai_responses, recorded.RESPONSES_RESEARCH_AGENT, id="responses"),
    pytest.param(openai_responses, recorded.RESPONSES_ONE_TEXT, id="responses-one-text"),
    pytest.param(anthropic, recorded.ANTHROPIC_CODING_AGENT, id="anthropic"),
    pytest.param(anthropic, recorded.ANTHROPIC_SMALL, id="anthropic-small"),
]


@pytest.mark.parametrize(("provider", "request_"), RECORDED)
def test_it_comes_back_byte_for_byte(provider: ModuleType, request_: dict[str, Any]) -> None:
    result = provider.to_request(provider.from_request(request_))
    assert json.dumps(result) == json.dumps(request_)


def texts(value: object) -> Iterator[str]:
    """Yield every string among the values of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for member in value.values() if isinstance(value, dict) else value:
            yield from texts(member)


# How a request is written, what caches it, what the provider calls its items. All else compares.
UNSEEN = {
    openai_chat: {"developer", "custom", "reasoning_content", "ephemeral"},
    openai_responses: {
        *("developer", "message", "msg_1", "fc_1", "ctc_1", "completed", "commentary"),
        *("custom_tool_call", "custom_tool_call_output", "other"),
    },
    anthropic: {"ephemeral"},
}


@pytest.mark.parametrize(("provider", "request_"), RECORDED)
def test_the_metadata_holds_nothing_the_model_sees(
    provider: ModuleType, request_: dict[str, Any]
) -> None:
    messages = provider.from_request(request_).messages
    metadata = [json.loads(message.metadata_json or "{}") for message in messages]
    assert set(texts(metadata)) <= UNSEEN[provider]


def test_a_chat_request_in_the_terms_of_the_log() -> None:
    converted = openai_chat.from_request(recorded.CHAT_CODING_AGENT)
    messages = converted.messages
    assert [m.role for m in messages] == [1, 2, 3, 4, 4, 4, 3, 2, 3, 1, 2]
    assert messages[0].content == "You fix bugs. Run the tests before you answer."
    assert messages[1].name == "maria"
    assert isinstance(messages[1].content, tuple)
    text, embedded, linked = messages[1].content
    assert text == TextPart("The chart is cut off, see the picture. Größe prüfen!")
    assert isinstance(embedded, OpaquePart)
    assert json.loads(embedded.json) == recorded.CHAT_CODING_AGENT["messages"][1]["content"][1]
    assert linked == OpaquePart(
        "openai.image_url",
        '{"type": "image_url", "image_url": {"url": "https://example.org/chart.png"}}',
    )
    assert messages[2].content == "I look at the renderer and at its tests."
    assert messages[2].tool_calls == (
        ToolCall("call_a1", "read_file", '{"path":"src/chart.py"}'),
        ToolCall("call_a2", "run_tests", '{\n  "k": "chart"\n}'),
        ToolCall("call_a3", "apply_patch", "*** Begin Patch\n*** End Patch"),
    )
    assert messages[3] == Message(Role.TOOL, "1 failed, 12 passed", tool_call_id="call_a2")
    assert messages[4].content == (TextPart("def draw(): ..."),)
    assert messages[6].content == (
        OpaquePart("openai:fields", '{"refusal": "I can\'t help with that."}'),
    )
    assert messages[7] == Message(Role.USER, "")
    assert messages[8].reasoning == "The width is an integer division."
    assert set(converted.groups) == {None}


def test_a_chat_header() -> None:
    header = openai_chat.from_request(recorded.CHAT_CODING_AGENT).header
    assert (header.provider, header.model) == ("openai_chat", "gpt-5.1")
    assert header.reasoning_effort == "low"
    assert [json.loads(tool) for tool in header.tools_json] == recorded.CHAT_CODING_AGENT["tools"]
    parameters = json.loads(header.parameters_json)
    assert parameters["stop"] == ["END", "\n\n"]
    assert "messages" not in parameters


def test_responses_items_of_one_answer_become_one_message() -> None:
    converted = openai_responses.from_request(recorded.RESPONSES_RESEARCH_AGENT)
    said = converted.messages[2]
    assert isinstance(said.content, tuple)
    assert [type(part) for part in said.content] == [
        ReasoningPart,
        TextPart,
        ToolCallPart,
        ToolCallPart,
        OpaquePart,
    ]
    assert said.tool_calls == (
        ToolCall("call_b1", "fetch", '{"url":"https://example.org/1"}'),
        ToolCall("call_b2", "python", "print(1)"),
    )
    assert [m.role for m in converted.messages] == [1, 2, 3, 4, 4, 3, 4, 3, 3, 2, 2]
    assert converted.messages[3] == Message(Role.TOOL, "page one", tool_call_id="call_b1")
    assert converted.header.system_prompt == "You research and cite."
    assert converted.header.reasoning_effort == "high"


def test_calls_and_results_of_a_kind_unknown_to_us_pair_all_the_same() -> None:
    messages = openai_responses.from_request(recorded.RESPONSES_RESEARCH_AGENT).messages
    assert messages[5].tool_calls[0].id == messages[6].tool_call_id == "call_b3"


def test_an_anthropic_request_in_the_terms_of_the_log() -> None:
    converted = anthropic.from_request(recorded.ANTHROPIC_CODING_AGENT)
    said = converted.messages[1]
    assert said.tool_calls == (
        ToolCall("toolu_1", "bash", '{"command": "make", "timeout": 10.0, "ünï": [1, 1.0, null]}'),
        ToolCall("toolu_2", "list", "{}"),
    )
    assert said.content == (
        ReasoningPart(
            json='{"type": "thinking", "thinking": "Two things to look at.", "signature": "EqoB=="}'
        ),
        ReasoningPart(json='{"type": "redacted_thinking", "data": "EmwK=="}'),
        TextPart("I look at both."),
        ToolCallPart(0),
        TextPart("And at the lock file."),
        ToolCallPart(1),
    )
    assert [m.role for m in converted.messages] == [2, 3, 4, 4, 2, 3, 2, 3, 4, 3]
    assert converted.groups == (
        *(None, None),
        *["tool_results:toolu_1"] * 3,
        *(None, None, None, "tool_results:toolu_3", None),
    )
    assert converted.messages[2].content == (
        TextPart("make: *** error 2"),
        OpaquePart("anthropic:fields", '{"is_error": true}'),
    )
    assert converted.messages[7].content == "Doing so."
    assert converted.messages[8].tool_call_id == "toolu_3"
    assert converted.messages[8].content is None


def test_an_anthropic_header() -> None:
    header = anthropic.from_request(recorded.ANTHROPIC_CODING_AGENT).header
    assert header.system_prompt == "You are a coding agent.\n\nThe working directory is /srv."
    assert header.reasoning_effort == "medium"
    assert header.system_prompt not in header.parameters_json


def test_a_header_in_its_natural_form_holds_nothing_but_itself() -> None:
    request = {"model": "m", "system": "s", "messages": [], "tools": [{"name": "f"}], "stop": 1}
    assert anthropic.from_request(request).header == Header(
        "anthropic", "m", '{"stop": 1}', "s", ('{"name": "f"}',)
    )


def test_a_cache_breakpoint_changes_nothing_that_compares() -> None:
    def seen(marked: bool) -> list[Any]:
        block: dict[str, Any] = {"type": "text", "text": "hi"}
        image: dict[str, Any] = {
            "type": "image",
            "source": {"type": "url", "url": "https://example.org"},
        }
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "c", "content": "ok"}
        if marked:
            block["cache_control"] = {"type": "ephemeral"}
            image |= {"cache_control": {"type": "ephemeral"}}
            result |= {"cache_control": {"type": "ephemeral"}}
        request = {"messages": [{"role": "user", "content": [block, image, result]}]}
        messages = anthropic.from_request(request).messages
        return [(m.role, m.content, m.tool_call_id) for m in messages]

    assert seen(True) == seen(False)


TEXT_CACHED = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}


def test_the_order_of_members_is_no_difference_between_headers() -> None:
    natural = {"model": "m", "messages": [], "stop": 1, "temperature": 1}
    other = {"temperature": 1, "messages": [], "model": "m", "stop": 1}
    logged, sent = (openai_chat.from_request(request).header for request in (natural, other))
    assert differing_fields(logged, sent) == ()
    assert differing_fields(logged, sent, byte_exact=True) == ("parameters_json",)


def test_a_request_written_in_another_way_has_the_header_that_was_logged_natively() -> None:
    request = {"messages": [], "max_tokens": 1, "system": [TEXT_CACHED], "model": "m"}
    native = Header("anthropic", "m", '{"max_tokens": 1}', "s")
    assert differing_fields(native, anthropic.from_request(request).header) == ()
