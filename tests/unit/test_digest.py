"""Prefix digests, held to the published vectors by an implementation of their rule."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

import pytest
from foldlog.codec import message_from_proto
from foldlog.core.digest import ZERO, encode, extend, message_digest, prefix_digest
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import AttachmentPart, Message, Role, TextPart, ToolCall, ToolCallPart
from foldlog.v1 import message_pb2
from google.protobuf.json_format import ParseDict

from tests.tools.descriptors import PROTOS
from tests.tools.vectors import text

STORED = (PROTOS / "foldlog" / "v1" / "vectors.json").read_text()
VECTORS: dict[str, Any] = json.loads(STORED)
MESSAGES = {each["name"]: each for each in VECTORS["messages"]}
SEQUENCES = {each["name"]: each for each in VECTORS["sequences"]}
ROLES = {"ROLE_SYSTEM": 1, "ROLE_USER": 2, "ROLE_ASSISTANT": 3, "ROLE_TOOL": 4}


class Rule:
    """The rule of vectors.json over proto3 JSON, written without the service's code."""

    def message(self, fields: dict[str, Any]) -> bytes:
        role = fields.get("role", 0)
        number = self.number(ROLES.get(role, role) % 2**32, 4)
        if role == "ROLE_SYSTEM":
            return number
        calls = fields.get("toolCalls", [])
        return b"".join(
            [
                number,
                self.content(fields),
                self.number(len(calls), 4),
                *(self.call(call) for call in calls),
                self.opt(fields.get("toolCallId")),
                self.opt(fields.get("name")),
            ]
        )

    def content(self, fields: dict[str, Any]) -> bytes:
        if "text" in fields:
            return b"\1" + self.framed(fields["text"])
        if "parts" in fields:
            parts = fields["parts"].get("parts", [])
            return b"\2" + self.number(len(parts), 4) + b"".join(map(self.part, parts))
        return b"\0"

    def call(self, call: dict[str, Any]) -> bytes:
        return b"".join(self.opt(call.get(name)) for name in ("id", "name", "arguments"))

    def part(self, part: dict[str, Any]) -> bytes:
        match part:
            case {"text": said}:
                return b"\1" + self.framed(said)
            case {"attachment": attachment}:
                return b"\2" + self.attachment(attachment)
            case {"reasoning": {"text": said}}:
                return b"\3" + self.framed(said)
            case {"reasoning": {"json": said}}:
                return b"\4" + self.framed(said)
            case {"toolCallIndex": index}:
                return b"\5" + self.number(index, 4)
            case {"opaque": {"kind": kind, "json": said}}:
                return b"\6" + self.framed(kind) + self.framed(said)
        return b"\0"

    def attachment(self, attachment: dict[str, Any]) -> bytes:
        raw = base64.b64decode(attachment["sha256"])
        size = attachment.get("sizeBytes")
        return b"".join(
            [
                self.number(len(raw), 4) + raw,
                self.framed(attachment["mediaType"]),
                self.opt(attachment.get("name")),
                b"\0" if size is None else b"\1" + self.number(int(size), 8),
            ]
        )

    @staticmethod
    def number(value: int, width: int) -> bytes:
        return value.to_bytes(width, "big")

    def framed(self, said: str) -> bytes:
        return self.number(len(said.encode()), 4) + said.encode()

    def opt(self, said: str | None) -> bytes:
        return b"\0" if said is None else b"\1" + self.framed(said)


def parsed(fields: dict[str, Any]) -> Message:
    return message_from_proto(ParseDict(fields, message_pb2.Message()))


def test_the_vectors_file_is_what_the_generator_writes() -> None:
    assert text() == STORED


def test_there_are_enough_vectors() -> None:
    assert len(MESSAGES) == len(VECTORS["messages"]) >= 25
    assert len(SEQUENCES) == len(VECTORS["sequences"]) >= 5


@pytest.mark.parametrize("vector", MESSAGES.values(), ids=MESSAGES)
def test_a_message_vector_follows_from_the_rule(vector: dict[str, Any]) -> None:
    m = Rule().message(vector["message"])
    assert m.hex() == vector["m"]
    assert sha256(m).hexdigest() == vector["sha256"]
    assert sha256(bytes(32) + sha256(m).digest()).hexdigest() == vector["d1"]


@pytest.mark.parametrize("vector", MESSAGES.values(), ids=MESSAGES)
def test_the_core_computes_a_message_vector(vector: dict[str, Any]) -> None:
    message = parsed(vector["message"])
    assert encode(message).hex() == vector["m"]
    assert message_digest(message).hex() == vector["sha256"]
    assert extend(ZERO, message_digest(message)).hex() == vector["d1"]


@pytest.mark.parametrize("vector", SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_vector_follows_from_the_rule(vector: dict[str, Any]) -> None:
    messages = vector["messages"]
    leading = bool(messages) and messages[0].get("role") == "ROLE_SYSTEM"
    running = [bytes(32)]
    for fields in messages[1:] if leading else messages:
        running.append(sha256(running[-1] + sha256(Rule().message(fields)).digest()).digest())
    assert [digest.hex() for digest in running] == vector["running"]
    assert (len(running) - 1, leading) == (vector["count"], vector["leading_system"])
    assert running[-1].hex() == vector["digest"]


@pytest.mark.parametrize("vector", SEQUENCES.values(), ids=SEQUENCES)
def test_the_core_computes_a_sequence_vector(vector: dict[str, Any]) -> None:
    count, digest, leading_system = prefix_digest(map(parsed, vector["messages"]))
    assert (count, digest.hex()) == (vector["count"], vector["digest"])
    assert leading_system == vector["leading_system"]


def test_vectors_differ_but_for_those_that_the_rule_makes_alike() -> None:
    groups: dict[str, set[str]] = {}
    for name, vector in MESSAGES.items():
        groups.setdefault(vector["m"], set()).add(name)
    assert [names for names in groups.values() if len(names) > 1] == [
        {"a text", "metadata and reasoning are left out"},
        {"a system message counts by its role", "another system message, the same bytes"},
        {"reasoning of neither kind", "a part without a kind"},
    ]


AMBIGUOUS = [
    (Message(Role.USER, "a", name="b"), Message(Role.USER, "ab")),
    (Message(Role.USER, (TextPart("a"), TextPart("b"))), Message(Role.USER, (TextPart("ab"),))),
    (
        Message(Role.ASSISTANT, None, (ToolCall("a", None, "b"),)),
        Message(Role.ASSISTANT, None, (ToolCall("a", "b", None),)),
    ),
    (
        Message(Role.ASSISTANT, None, (ToolCall("a"), ToolCall("b"))),
        Message(Role.ASSISTANT, None, (ToolCall("a"),), tool_call_id="b"),
    ),
]


@pytest.mark.parametrize(("a", "b"), AMBIGUOUS)
def test_fields_do_not_run_into_each_other(a: Message, b: Message) -> None:
    assert encode(a) != encode(b)


UNENCODABLE = {
    "content": Message(Role.USER, "\ud800"),
    "a part": Message(Role.USER, (TextPart("\udc00"),)),
    "a call id": Message(Role.ASSISTANT, None, (ToolCall("\ud800"),)),
    "a name": Message(Role.USER, None, name="\ud800"),
    "an index below 0": Message(Role.USER, (ToolCallPart(-1),)),
    "a size past 64 bits": Message(Role.USER, (AttachmentPart(b"", "a/b", size_bytes=2**64),)),
}


@pytest.mark.parametrize("message", UNENCODABLE.values(), ids=UNENCODABLE)
def test_what_has_no_bytes_is_a_typed_error(message: Message) -> None:
    with pytest.raises(InvalidFieldError):
        encode(message)


def test_of_a_system_message_nothing_else_is_looked_at() -> None:
    assert encode(Message(Role.SYSTEM, "\ud800")) == (1).to_bytes(4, "big")
