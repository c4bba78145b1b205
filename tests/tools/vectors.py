"""Writes the vectors of digests and encodings: `python -m tests.tools.vectors > FILE`.

The file is protos/foldlog/v1/vectors.json.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

from foldlog.codec import header_from_proto, message_from_proto
from foldlog.core.digest import ZERO, encode, extend, message_digest, prefix_digest
from foldlog.core.request import encoded_header, encoded_message, request_digest
from foldlog.v1.event_pb2 import RequestHeader
from foldlog.v1.message_pb2 import Message
from google.protobuf.json_format import MessageToDict, ParseDict

RULE = [
    "A prefix digest stands for the first messages of a request. Both sides compute it alike, so",
    "that a check needs only the digest and the new messages.",
    "",
    "d(0) is 32 zero bytes. d(i+1) = SHA-256(d(i) || SHA-256(m)), where m is message i as bytes.",
    "If the first message of the list has role system, it is left out, not counted, and sent as",
    "the flag leading_system. Later system messages are counted.",
    "",
    "m is the role as u32. Of a system message that is all. Else there follow, in this order:",
    "  content     byte 0 if unset; byte 1 and str if it is text; byte 2, u32 count and the parts",
    "              if it is a list of parts. An empty text and an empty list are not unset.",
    "  tool_calls  u32 count; of each call opt id, opt name, opt arguments.",
    "  opt tool_call_id",
    "  opt name",
    "Metadata, reasoning (the field, not the part) and times are left out.",
    "",
    "A part is",
    "  byte 1, str text",
    "  byte 2, str sha256 (its 32 raw bytes), str media_type, opt name, then byte 0 if size_bytes",
    "          is unset, else byte 1 and u64",
    "  byte 3, str text                  reasoning as text",
    "  byte 4, str json                  reasoning as JSON",
    "  byte 5, u32                       tool_call_index",
    "  byte 6, str kind, str json        opaque",
    "  byte 0                            any other, or none",
    "",
    "u32 and u64 are unsigned and big-endian; a role that is negative is taken modulo 2^32.",
    "str is u32, the length in bytes, and then the bytes: of a text its UTF-8, never normalised.",
    "opt is byte 0 if the field is unset, else byte 1 and str. Unset and empty differ.",
    "JSON and tool call arguments are texts: taken as they are, never parsed.",
]

REQUEST_RULE = [
    "The encoding of a request is one byte 1, the header, then the messages up to the end. Its",
    "SHA-256 is the encoding_sha256 of BeginStep, BuildRequest and RecordRequest.",
    "",
    "The header is str provider, str model, str parameters_json, str system_prompt, u32 number of",
    "tools, of each str, str reasoning_effort. Its reason is left out.",
    "",
    "A message is u32, the length in bytes of what follows, then m as above, of a system message",
    "too in full, then opt reasoning, opt metadata_json, opt group (of its event).",
]

USER, SYSTEM, ASSISTANT, TOOL = "ROLE_USER", "ROLE_SYSTEM", "ROLE_ASSISTANT", "ROLE_TOOL"
SHA256 = base64.b64encode(bytes(range(32))).decode()
CALL = {"id": "call_1", "name": "read_file", "arguments": '{"path": "a.txt"}'}

Fields = dict[str, Any]


def _user(**fields: Any) -> Fields:
    return {"role": USER, **fields}


def _parts(*parts: Fields, role: str = USER, **fields: Any) -> Fields:
    return {"role": role, "parts": {"parts": list(parts)}, **fields}


MESSAGES: dict[str, Fields] = {
    "a text": _user(text="hi"),
    "an empty text": _user(text=""),
    "no content": _user(),
    "an empty list of parts": _parts(),
    "the text a": _user(text="a"),
    "the parts [a]": _parts({"text": "a"}),
    "two text parts, one empty": _parts({"text": ""}, {"text": "b"}),
    "a system message counts by its role": {"role": SYSTEM, "text": "You are helpful."},
    "another system message, the same bytes": {"role": SYSTEM, "name": "n", "toolCalls": [CALL]},
    "no role": {"text": "hi"},
    "a role of a newer release": {"role": 9, "text": "hi"},
    "a negative role": {"role": -1},
    "a name": _user(text="hi", name="ann"),
    "an empty name": _user(text="hi", name=""),
    "metadata and reasoning are left out": _user(
        text="hi", metadataJson='{"a": 1}', reasoning="hm", createTime="2026-01-02T03:04:05Z"
    ),
    "composed": _user(text="Zo\u00eb"),
    "decomposed": _user(text="Zoe\u0308"),
    "beyond the basic plane, joined": _user(text="\U0001f469\u200d\U0001f680 \U0001f525"),
    "NUL and other controls": _user(text="a\u0000b\u001f\u007f"),
    "a text longer than 255 bytes": _user(text="\u00e9" * 200),
    "a call, no content": {"role": ASSISTANT, "toolCalls": [CALL]},
    "a call, empty text": {"role": ASSISTANT, "text": "", "toolCalls": [CALL]},
    "an empty list of calls": {"role": ASSISTANT, "text": "ok", "toolCalls": []},
    "parallel calls": {
        "role": ASSISTANT,
        "text": "",
        "toolCalls": [CALL, {**CALL, "id": "call_2"}],
    },
    "a call without fields": {"role": ASSISTANT, "toolCalls": [{}]},
    "a call with empty fields": {
        "role": ASSISTANT,
        "toolCalls": [{"id": "", "name": "", "arguments": ""}],
    },
    "arguments that are not JSON": {
        "role": ASSISTANT,
        "toolCalls": [{"id": "c", "name": "f", "arguments": '{"a": 1, "a":'}],
    },
    "a result": {"role": TOOL, "text": "3 hits", "toolCallId": "call_1", "name": "read_file"},
    "a result without content": {"role": TOOL, "toolCallId": "call_1"},
    "a result without an id": {"role": TOOL, "text": "r"},
    "a result with an empty id": {"role": TOOL, "text": "r", "toolCallId": ""},
    "an attachment": _parts(
        {
            "attachment": {
                "sha256": SHA256,
                "mediaType": "image/png",
                "name": "shot.png",
                "sizeBytes": "1024",
            }
        }
    ),
    "an attachment, name and size unset": _parts(
        {"attachment": {"sha256": SHA256, "mediaType": "text/plain"}}
    ),
    "an attachment, empty name and size 0": _parts(
        {"attachment": {"sha256": SHA256, "mediaType": "text/plain", "name": "", "sizeBytes": "0"}}
    ),
    "an attachment of the largest size": _parts(
        {"attachment": {"sha256": SHA256, "mediaType": "a/b", "sizeBytes": "18446744073709551615"}}
    ),
    "reasoning as text": _parts({"reasoning": {"text": "hm"}}, role=ASSISTANT),
    "reasoning as JSON": _parts({"reasoning": {"json": '{"sig": "x"}'}}, role=ASSISTANT),
    "reasoning of neither kind": _parts({"reasoning": {}}),
    "text, call, text, call": _parts(
        {"text": "first"},
        {"toolCallIndex": 0},
        {"text": "then"},
        {"toolCallIndex": 1},
        role=ASSISTANT,
        toolCalls=[CALL, {**CALL, "id": "call_2"}],
    ),
    "opaque": _parts({"opaque": {"kind": "openai.image_url", "json": '{"url":"https://a/b"}'}}),
    "the same JSON in other bytes": _parts(
        {"opaque": {"kind": "openai.image_url", "json": '{ "url": "https:\\/\\/a\\/b" }'}}
    ),
    "a part without a kind": _parts({}),
}

SEQUENCES: dict[str, list[Fields]] = {
    "nothing": [],
    "a leading system message is left out": [
        {"role": SYSTEM, "text": "sys"},
        MESSAGES["a text"],
        MESSAGES["a call, empty text"],
        MESSAGES["a result"],
    ],
    "the same without it": [
        MESSAGES["a text"],
        MESSAGES["a call, empty text"],
        MESSAGES["a result"],
    ],
    "a system message alone": [{"role": SYSTEM, "text": "sys"}],
    "only the first of two is left out": [
        {"role": SYSTEM, "text": "sys"},
        {"role": SYSTEM, "text": "summary"},
        MESSAGES["a text"],
    ],
    "a system message in the middle counts": [
        MESSAGES["a text"],
        {"role": SYSTEM, "text": "summary"},
        MESSAGES["a name"],
    ],
    "equal messages": [MESSAGES["a text"], MESSAGES["a text"]],
}


HEADER: Fields = {
    "provider": "openai",
    "model": "gpt-5",
    "parametersJson": '{"temperature": 1.0, "stop": ["\\n"]}',
    "systemPrompt": "Be brief.",
    "toolsJson": ['{"name": "f"}', '{ "name":"g" }'],
    "reason": "HEADER_REASON_RESUME",
    "reasoningEffort": "high",
}

REQUESTS: dict[str, tuple[Fields, list[Fields]]] = {
    "an empty header, no messages": ({}, []),
    "a header with every field": (HEADER, []),
    "messages of every role": (
        HEADER,
        [
            {"message": {"role": SYSTEM, "text": "summary", "name": "n"}},
            {"message": MESSAGES["a text"]},
            {"message": MESSAGES["a call, empty text"]},
            {"message": MESSAGES["a result"]},
        ],
    ),
    "the same without the last": (
        HEADER,
        [
            {"message": {"role": SYSTEM, "text": "summary", "name": "n"}},
            {"message": MESSAGES["a text"]},
            {"message": MESSAGES["a call, empty text"]},
        ],
    ),
    "reasoning, metadata and a group count": (
        {},
        [
            {"message": MESSAGES["metadata and reasoning are left out"], "group": "g"},
            {"message": {**_user(text="hi"), "reasoning": "", "metadataJson": "{}"}, "group": ""},
        ],
    ),
    "parts of every kind": (
        {"model": "m"},
        [
            {"message": MESSAGES[name]}
            for name in (
                "an attachment",
                "an attachment, name and size unset",
                "reasoning as text",
                "reasoning as JSON",
                "text, call, text, call",
                "opaque",
                "the same JSON in other bytes",
                "beyond the basic plane, joined",
                "NUL and other controls",
            )
        ],
    ),
}


def vectors() -> dict[str, Any]:
    """Return the rule and the vectors as the file has them."""
    return {
        "rule": RULE,
        "notation": "Messages are foldlog.v1.Message in the proto3 JSON mapping; bytes are hex.",
        "messages": [_message_vector(name, fields) for name, fields in MESSAGES.items()],
        "sequences": [_sequence_vector(name, each) for name, each in SEQUENCES.items()],
        "request_rule": REQUEST_RULE,
        "requests": [_request_vector(name, *each) for name, each in REQUESTS.items()],
    }


def _message_vector(name: str, fields: Fields) -> Fields:
    message = message_from_proto(ParseDict(fields, Message()))
    return {
        "name": name,
        "message": fields,
        "m": encode(message).hex(),
        "sha256": message_digest(message).hex(),
        "d1": extend(ZERO, message_digest(message)).hex(),
    }


def _sequence_vector(name: str, messages: list[Fields]) -> Fields:
    parsed = [message_from_proto(ParseDict(fields, Message())) for fields in messages]
    count, digest, leading_system = prefix_digest(parsed)
    running = [prefix_digest(parsed[: i + leading_system])[1].hex() for i in range(count + 1)]
    return {
        "name": name,
        "messages": messages,
        "leading_system": leading_system,
        "count": count,
        "running": running,
        "digest": digest.hex(),
    }


def _request_vector(name: str, header: Fields, messages: list[Fields]) -> Fields:
    parsed = header_from_proto(ParseDict(header, RequestHeader()))
    pairs = [
        (message_from_proto(ParseDict(each["message"], Message())), each.get("group"))
        for each in messages
    ]
    encoding = encoded_header(parsed) + b"".join(encoded_message(*pair) for pair in pairs)
    assert request_digest(parsed, pairs) == sha256(encoding).digest()
    return {
        "name": name,
        "header": _as_in_exports(header),
        "messages": messages,
        "encoding": encoding.hex(),
        "sha256": sha256(encoding).hexdigest(),
    }


def _as_in_exports(header: Fields) -> Fields:
    """Return a header's fields under the names of the proto."""
    shown: Fields = MessageToDict(
        ParseDict(header, RequestHeader()), preserving_proto_field_name=True
    )
    return shown


def text() -> str:
    """Return the file's text."""
    return json.dumps(vectors(), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    print(text(), end="")
