"""Prefix digests computed from the rules of the wire contract, apart from the service's code."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from foldlog.v1 import check_pb2, message_pb2


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _bytes(data: bytes) -> bytes:
    return _u32(len(data)) + data


def _text(text: str) -> bytes:
    return _bytes(text.encode())


def _option(text: str | None) -> bytes:
    return b"\0" if text is None else b"\1" + _text(text)


def _part(part: message_pb2.Part) -> bytes:
    match part.WhichOneof("kind"):
        case "text":
            return b"\1" + _text(part.text)
        case "attachment":
            return b"\2" + _attachment(part.attachment)
        case "reasoning" if part.reasoning.WhichOneof("kind") == "text":
            return b"\3" + _text(part.reasoning.text)
        case "reasoning":
            return b"\4" + _text(part.reasoning.json)
        case "tool_call_index":
            return b"\5" + _u32(part.tool_call_index)
        case "opaque":
            return b"\6" + _text(part.opaque.kind) + _text(part.opaque.json)
    return b"\0"


def _attachment(ref: message_pb2.AttachmentRef) -> bytes:
    name = ref.name if ref.HasField("name") else None
    size = b"\1" + ref.size_bytes.to_bytes(8, "big") if ref.HasField("size_bytes") else b"\0"
    return _bytes(ref.sha256) + _text(ref.media_type) + _option(name) + size


def _content(message: message_pb2.Message) -> bytes:
    match message.WhichOneof("content"):
        case "text":
            return b"\1" + _text(message.text)
        case "parts":
            parts = message.parts.parts
            return b"\2" + _u32(len(parts)) + b"".join(map(_part, parts))
    return b"\0"


def _call(call: message_pb2.ToolCall) -> bytes:
    return b"".join(
        (
            _option(call.id if call.HasField("id") else None),
            _option(call.name if call.HasField("name") else None),
            _option(call.arguments if call.HasField("arguments") else None),
        )
    )


def encoded(message: message_pb2.Message) -> bytes:
    """Return the bytes of a message that a digest is taken over."""
    if message.role == message_pb2.ROLE_SYSTEM:
        return _u32(message.role)
    calls = message.tool_calls
    return b"".join(
        (
            _u32(message.role),
            _content(message),
            _u32(len(calls)),
            *map(_call, calls),
            _option(message.tool_call_id if message.HasField("tool_call_id") else None),
            _option(message.name if message.HasField("name") else None),
        )
    )


def prefix_digest(messages: Sequence[message_pb2.Message]) -> check_pb2.PrefixDigest:
    """Return the digest of a request's first messages."""
    leading = bool(messages) and messages[0].role == message_pb2.ROLE_SYSTEM
    covered = messages[1:] if leading else messages
    digest = bytes(32)
    for message in covered:
        digest = sha256(digest + sha256(encoded(message)).digest()).digest()
    return check_pb2.PrefixDigest(count=len(covered), digest=digest, leading_system=leading)
