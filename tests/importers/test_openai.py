"""Lists of messages, requests, and lines of messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foldlog.client.bodies import HeaderSnapshot
from foldlog.converters import Converted, openai_chat, plain
from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.formats import Format
from foldlog.importers.report import NoteKind

from tests.importers.reading import bytes_of, lines, read

LIST = json.loads(bytes_of("openai_list.json"))


@pytest.mark.parametrize("name", ["openai_list.json", "openai_lines.jsonl", "openai_request.json"])
def test_the_messages_come_back_to_the_letter(name: str) -> None:
    made = read(bytes_of(name))
    assert plain.to_messages(message for _, message in made.surface) == LIST


def test_a_request_is_one_again_with_its_header() -> None:
    made = read(bytes_of("openai_request.json"))
    header = made.entries[0].event.body
    assert isinstance(header, HeaderSnapshot)
    converted = Converted(tuple(m for _, m in made.surface), header=header.header)
    assert openai_chat.to_request(converted) == json.loads(bytes_of("openai_request.json"))


@pytest.mark.parametrize(
    ("name", "provider"),
    [("anthropic_request.json", "anthropic"), ("responses_request.json", "openai_responses")],
)
def test_requests_for_other_apis_are_known_by_their_shape(name: str, provider: str) -> None:
    made = read(bytes_of(name))
    header = made.entries[0].event.body
    assert isinstance(header, HeaderSnapshot)
    assert header.header.provider == provider
    assert [role for role, _ in made.said] == ["user", "assistant", "tool"]


def test_a_message_keeps_the_time_it_has() -> None:
    made = read(bytes_of("openai_list.json"))
    assert [entry.event.time_ns for entry in made.entries] == [
        *(None, 1_772_355_600_000_000_000, None, None, None)
    ]


@pytest.mark.parametrize("message", [{"role": "tool", "content": "r"}, {"role": "narrator"}, {}])
def test_a_message_that_the_log_cannot_hold_is_kept_and_said(message: dict[str, Any]) -> None:
    made = read(json.dumps([{"role": "user", "content": "q"}, message]).encode(), Format.OPENAI)
    assert made.said == [("user", "q")]
    assert made.customs == ["openai.message"]
    assert made.noted(NoteKind.UNREPRESENTED)[0].startswith("line 2: ")


def test_of_a_torn_list_salvage_takes_the_whole_elements() -> None:
    data = json.dumps(LIST, indent=1).encode()[:-30]
    with pytest.raises(DamagedFileError, match=r"after 4 whole elements: .*--salvage takes those"):
        read(data)
    made = read(data, salvage=True)
    assert len(made.said) == 4
    assert made.noted(NoteKind.DAMAGED)[0].endswith("bytes")


def test_lines_that_hold_a_conversation_each_are_refused() -> None:
    data = lines([{"messages": LIST}, {"messages": LIST}])
    with pytest.raises(DamagedFileError, match=r"^line 1: it is a conversation of its own"):
        read(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"nonsense", b"{", b'{"a": 1}', b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\xff"],
)
def test_a_file_of_no_known_format_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFileError):
        read(data)


def test_a_document_over_several_lines_is_no_lines() -> None:
    made = read(b'{"messages": [\n{"role": "user", "content": "q"}\n]}')
    assert made.said == [("user", "q")]
