"""Files of messages and requests: which format they are, and what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foldlog.cli.documents import message_document, message_from_document
from foldlog.cli.outcome import CommandError
from foldlog.cli.requests import Format, detected, read_messages
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

USER = {"role": "user", "content": "hi"}
TOOL_USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}],
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([USER], Format.OPENAI_CHAT),
        ([USER, TOOL_USE], Format.ANTHROPIC),
        ([{"seq": 0, **USER}], Format.FOLDLOG),
        ({"model": "gpt-5", "messages": [USER]}, Format.OPENAI_CHAT),
        ({"model": "claude-x", "max_tokens": 9, "messages": [USER]}, Format.ANTHROPIC),
        ({"model": "m", "system": "s", "messages": [USER]}, Format.ANTHROPIC),
        ({"messages": [USER], "tools": [{"name": "n", "input_schema": {}}]}, Format.ANTHROPIC),
        ({"messages": [TOOL_USE]}, Format.ANTHROPIC),
        ({"model": "gpt-5", "input": "hi"}, Format.OPENAI_RESPONSES),
        ({"model": "gpt-5", "instructions": "x"}, Format.OPENAI_RESPONSES),
        (USER, Format.FOLDLOG),
    ],
)
def test_a_format_is_told_by_its_looks(document: Any, expected: Format) -> None:
    assert detected(document) is expected


@pytest.mark.parametrize(
    "document",
    [
        [USER],
        [{"seq": 3, **USER}],
        {"model": "gpt-5", "messages": [USER]},
        {"model": "claude-x", "max_tokens": 9, "messages": [USER]},
        {"model": "gpt-5", "input": [{"type": "message", **USER}]},
    ],
)
def test_the_same_message_comes_out_of_every_format(document: Any, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(document))
    given = read_messages(str(file))
    (message,) = given.messages
    assert (message.role, message.content) == (Role.USER, "hi")
    assert (given.header is not None) is isinstance(document, dict)


def test_json_lines_are_read_too(tmp_path: Path) -> None:
    file = tmp_path / "messages.jsonl"
    file.write_text("".join(json.dumps({"seq": n, **USER, "group": "g"}) + "\n" for n in range(3)))
    given = read_messages(str(file))
    assert len(given.messages) == 3
    assert given.groups == ("g", "g", "g")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is not JSON"),
        ('{"messages": [', "is not JSON"),
        ('{"a": NaN}', "has no place in JSON"),
        ('[{"seq": 1, "role": "robot"}]', "a role is one of system, user, assistant, tool"),
        ('[{"seq": 1, "role": "user", "content": [3]}]', "a part is a JSON object"),
        ('[{"seq": 1, "role": "user", "content": [{"type": "song"}]}]', "a part has a type"),
        ('{"messages": 3}', "must be a list"),
        ("3", "must be|a JSON object|is not"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_one_line(
    text: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "broken"
    file.write_text(text)
    with pytest.raises(CommandError, match=expected) as raised:
        read_messages(str(file))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match="/nowhere cannot be read: No such file"):
        read_messages("/nowhere")


@pytest.mark.parametrize(
    "message",
    [
        Message(Role.USER, "hi"),
        Message(Role.ASSISTANT, None, (ToolCall("c", "n", "{}"), ToolCall())),
        Message(Role.ASSISTANT, "", reasoning="r", metadata_json='{"a":1}', name=""),
        Message(Role.TOOL, (), tool_call_id="c", name="n"),
        Message(
            Role.USER,
            (
                TextPart("t"),
                AttachmentPart(b"\x00" * 32, "image/png"),
                AttachmentPart(b"\x01" * 32, "image/png", "n", 0),
                ReasoningPart(text="t"),
                ReasoningPart(json="{}"),
                ToolCallPart(0),
                OpaquePart("k", "{}"),
            ),
        ),
    ],
)
def test_a_message_that_was_printed_is_read_back_as_it_was(message: Message) -> None:
    assert message_from_document(json.loads(json.dumps(message_document(message)))) == message
