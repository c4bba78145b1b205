"""A whole request goes in and comes out equal, byte for byte."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from foldlog import codec
from foldlog.converters import anthropic, openai_chat, openai_responses
from foldlog.converters.converted import Converted
from foldlog.core.errors import InvalidFieldError
from foldlog.core.validation import validate_header, validate_message
from foldlog.v1 import event_pb2, message_pb2
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from tests.converters import strategies

PROVIDERS = [
    pytest.param(openai_chat, strategies.CHAT_REQUESTS, id="openai_chat"),
    pytest.param(openai_responses, strategies.RESPONSES_REQUESTS, id="openai_responses"),
    pytest.param(anthropic, strategies.ANTHROPIC_REQUESTS, id="anthropic"),
]


def logged(converted: Converted) -> Converted:
    """Return the value as it comes back from the log, through the wire's form."""
    messages = []
    for message in converted.messages:
        validate_message(message)
        wire = codec.message_to_proto(message).SerializeToString()
        messages.append(codec.message_from_proto(message_pb2.Message.FromString(wire)))
    validate_header(converted.header)
    wire = codec.header_to_proto(converted.header).SerializeToString()
    header = codec.header_from_proto(event_pb2.RequestHeader.FromString(wire))
    return Converted(tuple(messages), converted.groups, header)


@pytest.mark.parametrize(("provider", "requests"), PROVIDERS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_a_request_comes_back_byte_for_byte(
    provider: ModuleType, requests: st.SearchStrategy[dict[str, Any]], data: st.DataObject
) -> None:
    request = data.draw(requests)
    before = json.dumps(request)
    converted = provider.from_request(request)
    result = provider.to_request(logged(converted))
    assert json.dumps(result) == before
    assert json.dumps(request) == before
    assert provider.from_request(result) == converted


def changed(value: Any, data: st.DataObject) -> Any:
    """Return the value with something in it exchanged for any JSON value."""
    if isinstance(value, dict | list) and value and data.draw(st.integers(0, 3)) > 0:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = data.draw(st.sampled_from(keys))
        copy = value.copy()
        copy[key] = changed(value[key], data)
        return copy
    return data.draw(strategies.VALUES)


@pytest.mark.parametrize(("provider", "requests"), PROVIDERS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_json_comes_back_or_is_refused(
    provider: ModuleType, requests: st.SearchStrategy[dict[str, Any]], data: st.DataObject
) -> None:
    request = changed(data.draw(requests), data)
    try:
        converted = provider.from_request(request)
    except InvalidFieldError:
        return
    assert json.dumps(provider.to_request(logged(converted))) == json.dumps(request)


@pytest.mark.parametrize(("provider", "requests"), PROVIDERS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_metadata_of_any_other_make_is_survived(
    provider: ModuleType, requests: st.SearchStrategy[dict[str, Any]], data: st.DataObject
) -> None:
    converted = provider.from_request(data.draw(requests))
    metadata = st.fixed_dictionaries({f"foldlog.{provider.name}": DIFFERENCES | strategies.VALUES})
    messages = tuple(
        replace(message, metadata_json=json.dumps(data.draw(metadata)))
        for message in converted.messages
    )
    with contextlib.suppress(InvalidFieldError):
        json.dumps(provider.to_request(Converted(messages, converted.groups, converted.header)))


HINTS = st.sampled_from(["calls", "texts", "text", "reasoning", "output", "frame", "first", "bare"])
MEMBERS = st.sampled_from(["in", "drop", "set", "keys", "is", "content", "role", "0"])
DIFFERENCES = st.dictionaries(
    HINTS | st.just("difference"),
    st.recursive(
        strategies.SCALARS,
        lambda inner: st.dictionaries(MEMBERS, inner) | st.lists(inner, max_size=2),
        max_leaves=6,
    ),
)


def kinds(message: Any) -> list[str]:
    """Return the types of the blocks of a message, in order."""
    content = message.get("content")
    return [block["type"] for block in content] if isinstance(content, list) else []


def mixed(request: dict[str, Any]) -> bool:
    """Return whether a text stands between two results in one user message."""
    wanted = ["tool_result", "text", "tool_result"]
    return any(kinds(message)[:3] == wanted for message in request["messages"])


def interleaved(request: dict[str, Any]) -> bool:
    """Return whether thinking, a text and a call stand in one message with a call before a text."""
    found = [kinds(message) for message in request["messages"]]
    return any(
        "thinking" in k and "tool_use" in k and "text" in k[k.index("tool_use") :] for k in found
    )


def of_one_answer(request: dict[str, Any]) -> bool:
    """Return whether reasoning, a message and a call follow one another."""
    items = request.get("input")
    types = [item.get("type", "message") for item in items] if isinstance(items, list) else []
    wanted = ["reasoning", "message", "function_call"]
    return any(types[start : start + 3] == wanted for start in range(len(types)))


@pytest.mark.parametrize(
    ("requests", "wanted"),
    [
        pytest.param(strategies.ANTHROPIC_REQUESTS, mixed, id="text-between-results"),
        pytest.param(strategies.ANTHROPIC_REQUESTS, interleaved, id="interleaved"),
        pytest.param(strategies.RESPONSES_REQUESTS, of_one_answer, id="items-of-one-answer"),
    ],
)
def test_the_strategies_reach_what_is_hard(
    requests: st.SearchStrategy[dict[str, Any]], wanted: Callable[[dict[str, Any]], bool]
) -> None:
    unshrunk = settings(
        phases=[Phase.generate],
        max_examples=2_000,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    assert wanted(find(requests, wanted, settings=unshrunk))
