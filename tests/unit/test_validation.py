"""What an append may hold, and which field is named when it may not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from foldlog.core.errors import InvalidFieldError, TooLargeError
from foldlog.core.event import PositionRange
from foldlog.core.header import Header
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
)
from foldlog.core.validation import (
    validate_custom,
    validate_header,
    validate_labels,
    validate_message,
    validate_replace,
    validate_request_id,
    validate_session_id,
)

CALLS = (ToolCall("c"), ToolCall("c"))
DIGEST = bytes(32)


def fields_refused(judge: Callable[[], None]) -> list[str]:
    with pytest.raises(InvalidFieldError) as refused:
        judge()
    return list(refused.value.fields)


ACCEPTED = {
    "an empty assistant message": Message(Role.ASSISTANT),
    "an empty text": Message(Role.ASSISTANT, ""),
    "no parts": Message(Role.USER, ()),
    "a result without content": Message(Role.TOOL, tool_call_id="c"),
    "a result with an empty id": Message(Role.TOOL, "r", tool_call_id=""),
    "calls of one id": Message(Role.ASSISTANT, "", CALLS),
    "a call without fields": Message(Role.ASSISTANT, "", (ToolCall(),)),
    "arguments that are not JSON": Message(Role.ASSISTANT, "", (ToolCall("c", "f", "{a"),)),
    "calls of a user": Message(Role.USER, "u", CALLS, "q"),
    "NUL": Message(Role.USER, "a\0b", name="\0"),
    "metadata": Message(Role.SYSTEM, "s", metadata_json='{"a": 9007199254740993}'),
    "a call's place": Message(Role.ASSISTANT, (ToolCallPart(1), ToolCallPart(0)), CALLS),
    "reasoning": Message(Role.ASSISTANT, (ReasoningPart("r"), ReasoningPart(json="{}"))),
    "an attachment": Message(Role.USER, (AttachmentPart(DIGEST, "image/svg+xml"),)),
    "an opaque part": Message(Role.USER, (OpaquePart("image", '{"url": "x"}'),)),
}


@pytest.mark.parametrize("message", ACCEPTED.values(), ids=ACCEPTED)
def test_a_message_that_may_be_stored(message: Message) -> None:
    validate_message(message)


REFUSED = {
    "no role": (Message(0, "x"), "role"),
    "an unknown role": (Message(5, "x"), "role"),
    "a negative role": (Message(-1, "x"), "role"),
    "a result without an id": (Message(Role.TOOL, "r"), "tool_call_id"),
    "metadata that is not JSON": (Message(Role.USER, metadata_json="{"), "metadata_json"),
    "empty metadata": (Message(Role.USER, metadata_json=""), "metadata_json"),
    "metadata with a key twice": (
        Message(Role.USER, metadata_json='{"a":1,"a":2}'),
        "metadata_json",
    ),
}


@pytest.mark.parametrize(("message", "field"), REFUSED.values(), ids=REFUSED)
def test_a_message_that_may_not_be_stored(message: Message, field: str) -> None:
    assert fields_refused(lambda: validate_message(message)) == [field]


REFUSED_PARTS: dict[str, tuple[Part, str]] = {
    "no kind": (UnknownPart(), ""),
    "reasoning of no kind": (ReasoningPart(), ".reasoning"),
    "reasoning that is not JSON": (ReasoningPart(json="x"), ".reasoning.json"),
    "opaque without a kind": (OpaquePart("", "{}"), ".opaque.kind"),
    "opaque without JSON": (OpaquePart("k", ""), ".opaque.json"),
    "opaque NaN": (OpaquePart("k", "[NaN]"), ".opaque.json"),
    "opaque, too deep": (OpaquePart("k", "[" * 129 + "]" * 129), ".opaque.json"),
    "a call that is not there": (ToolCallPart(2), ".tool_call_index"),
    "a short digest": (AttachmentPart(b"x", "a/b"), ".attachment.sha256"),
    "a digest in hex": (AttachmentPart(b"0" * 64, "a/b"), ".attachment.sha256"),
    "no media type": (AttachmentPart(DIGEST, ""), ".attachment.media_type"),
}


@pytest.mark.parametrize(("part", "field"), REFUSED_PARTS.values(), ids=REFUSED_PARTS)
def test_a_part_is_refused_with_its_path(part: Part, field: str) -> None:
    message = Message(Role.ASSISTANT, (TextPart("first"), part), CALLS)
    assert fields_refused(lambda: validate_message(message)) == [f"parts.parts[1]{field}"]


@pytest.mark.parametrize(
    "media_type",
    ["image/png", "application/vnd.a+json", "text/plain;charset=utf-8", 'a/b; c="d e"', "A/B"],
)
def test_media_types(media_type: str) -> None:
    validate_message(Message(Role.USER, (AttachmentPart(DIGEST, media_type),)))


@pytest.mark.parametrize(
    "media_type",
    ["image", "/png", "image/", "image/png ", "a/b/c", "a b/c", "a/b;", "a/b\n", "\u00e9/b"],
)
def test_no_media_types(media_type: str) -> None:
    message = Message(Role.USER, (AttachmentPart(DIGEST, media_type),))
    assert fields_refused(lambda: validate_message(message)) == [
        "parts.parts[0].attachment.media_type"
    ]


def test_the_depth_is_a_setting() -> None:
    message = Message(Role.USER, metadata_json="[[[]]]")
    validate_message(message, max_json_depth=3)
    assert fields_refused(lambda: validate_message(message, max_json_depth=2)) == ["metadata_json"]


@pytest.mark.parametrize("range_", [PositionRange(0, 0), PositionRange(3, 9), PositionRange(9, 9)])
def test_a_range_below_its_own_seq(range_: PositionRange) -> None:
    validate_replace(range_, own_seq=10)


@pytest.mark.parametrize(
    ("start", "stop", "field"),
    [
        (-1, 3, "replace.positions.start"),
        (5, 4, "replace.positions"),
        (0, 10, "replace.positions.stop"),
        (10, 10, "replace.positions.stop"),
        (3, 2**62, "replace.positions.stop"),
        (12, 11, "replace.positions"),
    ],
)
def test_a_malformed_range(start: int, stop: int, field: str) -> None:
    assert fields_refused(lambda: validate_replace(PositionRange(start, stop), 10)) == [field]


@pytest.mark.parametrize("session_id", ["a", " ", "a/b", "\u00e9" * 256, "\U0001f525", "x" * 512])
def test_session_ids(session_id: str) -> None:
    validate_session_id(session_id, 512)


@pytest.mark.parametrize("session_id", ["", "\0", "a\0b", "\ud800"])
def test_no_session_ids(session_id: str) -> None:
    assert fields_refused(lambda: validate_session_id(session_id, 512)) == ["session_id"]


def test_a_session_id_is_measured_in_bytes() -> None:
    with pytest.raises(TooLargeError) as refused:
        validate_session_id("\u00e9" * 257, 512)
    assert refused.value.facts == {"field": "session_id", "size": 514, "limit": 512}


def test_a_request_id_may_be_absent_and_is_measured_in_bytes() -> None:
    validate_request_id("", 128)
    validate_request_id("r" * 128, 128)
    with pytest.raises(TooLargeError) as refused:
        validate_request_id("r" * 129, 128)
    assert refused.value.facts == {"field": "request_id", "size": 129, "limit": 128}
    assert fields_refused(lambda: validate_request_id("\udfff", 128)) == ["request_id"]


def test_labels_are_counted_and_measured() -> None:
    validate_labels({"a": "", "\u00e9" * 4: "x" * 8}, max_count=2, max_bytes=8)
    for labels, field in [
        ({"a": "", "b": "", "c": ""}, "labels"),
        ({"x" * 9: ""}, "labels"),
        ({"a": "x" * 9}, "labels[a]"),
    ]:
        with pytest.raises(TooLargeError) as refused:
            validate_labels(labels, max_count=2, max_bytes=8)
        assert refused.value.field == field


def test_a_label_has_a_key() -> None:
    assert fields_refused(lambda: validate_labels({"": "x"}, 2, 8)) == ["labels"]


FULL = Header("p", "m", '{"t": 1}', "s", ('{"name": "f"}', "[]"), "high")


@pytest.mark.parametrize("header", [Header(), FULL, replace(FULL, parameters_json=" {} ")])
def test_headers(header: Header) -> None:
    validate_header(header, 128)


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (Header(parameters_json="[]"), "parameters_json"),
        (Header(parameters_json="1"), "parameters_json"),
        (Header(parameters_json="null"), "parameters_json"),
        (Header(parameters_json="{"), "parameters_json"),
        (Header(parameters_json=" "), "parameters_json"),
        (Header(parameters_json='{"a": 1, "a": 1}'), "parameters_json"),
        (Header(tools_json=("{}", "")), "tools_json[1]"),
        (Header(tools_json=("{}", "{}", '{"a": NaN}')), "tools_json[2]"),
    ],
)
def test_a_malformed_header(header: Header, field: str) -> None:
    assert fields_refused(lambda: validate_header(header, 128)) == [field]


def test_custom_events_have_a_kind_and_few_short_keys() -> None:
    validate_custom("k", ["a"] * 8, 8, 128)
    assert fields_refused(lambda: validate_custom("", [], 8, 128)) == ["kind"]
    assert fields_refused(lambda: validate_custom("k", ["a"] * 9, 8, 128)) == ["keys"]
    with pytest.raises(TooLargeError) as refused:
        validate_custom("k", ["a", "b" * 129], 8, 128)
    assert refused.value.facts == {"field": "keys[1]", "size": 129, "limit": 128}
