"""Messages logged natively: each provider's natural form, and that it says the same."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from foldlog.converters import anthropic, openai_chat, openai_responses
from foldlog.converters.converted import Converted
from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.converters import recorded
from tests.converters.strategies import TEXTS

PROVIDERS = [
    pytest.param(provider, id=provider.name)
    for provider in (openai_chat, openai_responses, anthropic)
]
HEADER = Header(
    model="m",
    parameters_json='{"temperature": 1.0}',
    system_prompt="Be kind.",
    tools_json=('{"name": "f"}',),
    reasoning_effort="low",
)
CONVERSATION = (
    Message(Role.USER, "hi"),
    Message(
        Role.ASSISTANT, "I look.", (ToolCall("c1", "f", '{"a": 1}'), ToolCall("c2", "f", None))
    ),
    Message(Role.TOOL, "one", tool_call_id="c1"),
    Message(Role.TOOL, "two", tool_call_id="c2"),
    Message(Role.USER, (TextPart("and"), TextPart("now"))),
    Message(Role.ASSISTANT, "Done."),
)


def test_chat() -> None:
    assert openai_chat.to_request(Converted(CONVERSATION, header=HEADER)) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a": 1}'},
                    },
                    {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "and"}, {"type": "text", "text": "now"}],
            },
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"name": "f"}],
        "temperature": 1.0,
        "reasoning_effort": "low",
    }


def test_responses() -> None:
    assert openai_responses.to_request(Converted(CONVERSATION, header=HEADER)) == {
        "model": "m",
        "instructions": "Be kind.",
        "input": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "one"},
            {"type": "function_call_output", "call_id": "c2", "output": "two"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "and"},
                    {"type": "input_text", "text": "now"},
                ],
            },
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"name": "f"}],
        "temperature": 1.0,
        "reasoning": {"effort": "low"},
    }


def test_anthropic() -> None:
    assert anthropic.to_request(Converted(CONVERSATION, header=HEADER)) == {
        "model": "m",
        "system": "Be kind.",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                    {"type": "tool_use", "id": "c2", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "two"},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "text", "text": "and"}, {"type": "text", "text": "now"}],
            },
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"name": "f"}],
        "temperature": 1.0,
        "output_config": {"effort": "low"},
    }


ARGUMENTS = st.sampled_from(["{}", '{"path": "a"}', '{"n": [1, 2.5, null, "é"]}'])
CALLS = st.lists(st.builds(ToolCall, TEXTS, TEXTS, ARGUMENTS), max_size=3).map(tuple)
# A text that is empty next to calls is no block: the provider refuses those.
ANSWERS = st.builds(Message, st.just(Role.ASSISTANT), TEXTS.filter(bool), CALLS)
SILENT_CALLS = st.builds(Message, st.just(Role.ASSISTANT), st.none(), CALLS.filter(bool))
QUESTIONS = st.builds(
    Message, st.just(Role.USER), TEXTS | st.lists(st.builds(TextPart, TEXTS)).map(tuple)
)
RESULTS = st.builds(
    Message,
    st.just(Role.TOOL),
    TEXTS | st.lists(st.builds(TextPart, TEXTS)).map(tuple),
    tool_call_id=TEXTS,
)
# From a list of items, answers in a row may come back as one: so something stands between them.
TURNS = st.lists(st.tuples(ANSWERS | SILENT_CALLS, QUESTIONS | RESULTS), max_size=3)


def compared(converted: Converted) -> list[Message]:
    return [replace(message, metadata_json=None) for message in converted.messages]


@pytest.mark.parametrize("provider", PROVIDERS)
@given(turns=TURNS)
def test_its_natural_form_reads_as_what_was_logged(
    provider: ModuleType, turns: list[tuple[Message, Message]]
) -> None:
    native = Converted(tuple(message for turn in turns for message in turn))
    again = provider.from_request(provider.to_request(native))
    assert compared(again) == compared(native)


@pytest.mark.parametrize(
    ("provider", "request_"),
    [
        pytest.param(openai_chat, recorded.CHAT_CODING_AGENT, id="chat"),
        pytest.param(openai_responses, recorded.RESPONSES_RESEARCH_AGENT, id="responses"),
        pytest.param(openai_responses, recorded.RESPONSES_ONE_TEXT, id="responses-one-text"),
        pytest.param(anthropic, recorded.ANTHROPIC_CODING_AGENT, id="anthropic"),
    ],
)
def test_messages_appended_natively_follow_the_originals(
    provider: ModuleType, request_: dict[str, Any]
) -> None:
    converted = provider.from_request(request_)
    groups = converted.groups + (None,) * len(CONVERSATION)
    longer = Converted(converted.messages + CONVERSATION, groups, converted.header)
    key = "input" if provider is openai_responses else "messages"
    expected = provider.to_request(Converted(CONVERSATION))[key]
    before = request_[key] if isinstance(request_[key], list) else None
    before = before if before is not None else [{"role": "user", "content": request_[key]}]
    assert provider.to_request(longer) == {**request_, key: before + expected}


def test_one_group_after_another_stays_apart_though_they_have_one_name() -> None:
    message = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "a"},
            {"type": "text", "text": "b"},
        ],
    }
    once = anthropic.from_request({"messages": [message]})
    twice = Converted(once.messages * 2, once.groups * 2, once.header)
    assert anthropic.to_request(twice) == {"messages": [message, message]}


def test_a_result_appended_for_a_custom_call_takes_its_form() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "python", "input": "1"}
    converted = openai_responses.from_request({"input": [call]})
    result = Message(Role.TOOL, "1", tool_call_id="c1")
    assert openai_responses.to_request(Converted((*converted.messages, result))) == {
        "input": [call, {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"}]
    }


def test_system_messages_join_the_system_prompt_of_anthropic_unless_they_repeat_it() -> None:
    messages = (
        Message(Role.SYSTEM, "Be kind."),
        Message(Role.SYSTEM, (TextPart("Summary."),)),
        Message(Role.USER, "hi"),
    )
    request = anthropic.to_request(Converted(messages, header=Header(system_prompt="Be kind.")))
    assert request == {
        "system": "Be kind.\n\nSummary.",
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_system_messages_follow_the_blocks_of_a_system_prompt() -> None:
    system = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]
    converted = anthropic.from_request({"system": system, "messages": []})
    longer = Converted((Message(Role.SYSTEM, "b"),), header=converted.header)
    assert anthropic.to_request(longer)["system"] == [*system, {"type": "text", "text": "b"}]


def test_a_system_prompt_leads_a_chat_unless_the_first_message_repeats_it() -> None:
    header = Header(system_prompt="s")
    once = [{"role": "system", "content": "s"}]
    assert openai_chat.to_request(Converted((), header=header)) == {"messages": once}
    repeated = Converted((Message(Role.SYSTEM, "s"),), header=header)
    assert openai_chat.to_request(repeated) == {"messages": once}


INTERLEAVED = Message(
    Role.ASSISTANT,
    (ToolCallPart(1), TextPart("between"), ReasoningPart(text="hm")),
    (ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "{}")),
    metadata_json='{"mine": 1}',
)


def test_calls_stand_in_their_places_and_those_without_one_at_the_end() -> None:
    assert anthropic.to_request(Converted((INTERLEAVED,)))["messages"] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c2", "name": "g", "input": {}},
                {"type": "text", "text": "between"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
            ],
        }
    ]
    assert openai_responses.to_request(Converted((INTERLEAVED,)))["input"] == [
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "between"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    ]


IMAGES = [
    pytest.param(
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "input_image", "image_url": url, "detail": "auto"},
        {"type": "image", "source": source},
        id=str(source["type"]),
    )
    for url, source in [
        ("https://example.org/a.png", {"type": "url", "url": "https://example.org/a.png"}),
        (
            "data:image/png;base64,aGk=",
            {"type": "base64", "media_type": "image/png", "data": "aGk="},
        ),
    ]
]


@pytest.mark.parametrize(("chat", "responses", "claude"), IMAGES)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_image_of_one_provider_can_be_sent_to_the_others(
    provider: ModuleType, chat: dict[str, Any], responses: dict[str, Any], claude: dict[str, Any]
) -> None:
    blocks = {openai_chat: chat, openai_responses: responses, anthropic: claude}
    for source, block in blocks.items():
        key = source.SHAPE.messages
        converted = source.from_request({key: [{"role": "user", "content": [block]}]})
        request = provider.to_request(Converted(converted.messages))
        message = {"role": "user", "content": [blocks[provider]]}
        assert request == {provider.SHAPE.messages: [message]}


def test_a_failed_result_of_anthropic_can_be_sent_to_the_others() -> None:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "boom", "is_error": True}
    converted = anthropic.from_request({"messages": [{"role": "user", "content": [block]}]})
    assert openai_chat.to_request(Converted(converted.messages))["messages"] == [
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "boom"}]}
    ]


@pytest.mark.parametrize(
    ("provider", "message", "path"),
    [
        pytest.param(
            anthropic,
            Message(Role.ASSISTANT, None, (ToolCall("c", "f", "not JSON"),)),
            "messages[0].tool_calls[0].arguments",
            id="arguments-no-json",
        ),
        pytest.param(
            anthropic,
            Message(Role.USER, (OpaquePart("openai.input_audio", "{}"),)),
            "messages[0].content[0]",
            id="foreign-part",
        ),
        pytest.param(
            openai_chat,
            Message(Role.USER, (AttachmentPart(b"0" * 32, "image/png"),)),
            "messages[0].content[0]",
            id="attachment",
        ),
        pytest.param(openai_chat, Message(9, "hi"), "messages[0].role", id="role-chat"),
        pytest.param(openai_responses, Message(9, "hi"), "messages[0].role", id="role-responses"),
        pytest.param(anthropic, Message(9, "hi"), "messages[0].role", id="role-anthropic"),
        pytest.param(
            anthropic,
            Message(Role.ASSISTANT, (ToolCallPart(0),)),
            "messages[0].content[0]",
            id="no-such-call",
        ),
    ],
)
def test_what_a_provider_cannot_be_told_is_refused_with_its_path(
    provider: ModuleType, message: Message, path: str
) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        provider.to_request(Converted((message,)))
    assert list(refusal.value.fields) == [path]


def test_what_one_provider_noted_is_not_sent_to_another() -> None:
    header = anthropic.from_request({"stop": 1, "messages": [], "model": "m"}).header
    assert "foldlog.anthropic" in header.parameters_json
    request = {"model": "m", "messages": [], "stop": 1}
    assert openai_chat.to_request(Converted((), header=header)) == request


def test_parameters_that_are_no_object_are_refused() -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        openai_chat.to_request(Converted((), header=Header(parameters_json="[]")))
    assert list(refusal.value.fields) == ["header.parameters_json"]


def test_groups_stand_beside_the_messages_one_each() -> None:
    with pytest.raises(InvalidFieldError):
        Converted(CONVERSATION, ("g",))
