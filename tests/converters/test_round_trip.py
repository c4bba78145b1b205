"""A whole request goes in and comes out equal, byte for byte."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldlog import codec
from foldlog.converters import anthropic, openai_chat, openai_responses
from foldlog.converters.converted import Converted
from tests.converters import strategies

PROVIDERS = [
    pytest.param(openai_chat, strategies.CHAT_REQUESTS, id="openai_chat"),
    pytest.param(openai_responses, strategies.RESPONSES_REQUESTS, id="openai_responses"),
    pytest.param(anthropic, strategies.ANTHROPIC_REQUESTS, id="anthropic"),
]


def logged(converted: Converted) -> Converted:
    """Return the value as it comes back from the log, through the wire's form."""
    messages = [codec.message_to_proto(message) for message in converted.messages]
    header = codec.header_to_proto(converted.header)
    return Converted(
        tuple(
            codec.message_from_proto(type(pb).FromString(pb.SerializeToString())) for pb in messages
        ),
        converted.groups,
        codec.header_from_proto(type(header).FromString(header.SerializeToString())),
    )


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
