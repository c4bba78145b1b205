"""Prefix digests: a rolling SHA-256 over messages, as protos/foldlog/v1/vectors.json defines it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from struct import Struct
from struct import error as StructError

from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
)

ZERO = bytes(32)

_U32 = Struct(">I").pack
_U64 = Struct(">Q").pack
_BYTE_U32 = Struct(">BI").pack
_SYSTEM = int(Role.SYSTEM)
_SYSTEM_BYTES = _U32(_SYSTEM)
SYSTEM_DIGEST = sha256(_SYSTEM_BYTES).digest()


def encode(message: Message) -> bytes:
    """Return the bytes m of a message, length-prefixed, presence marked; of a system one its role.

    Raises InvalidFieldError if a text has no UTF-8 form or a number does not fit its field.
    """
    if message.role == _SYSTEM:
        return _SYSTEM_BYTES
    try:
        return b"".join(message_pieces(message))
    except UnicodeEncodeError as error:
        raise InvalidFieldError.of("message", f"has a text without UTF-8 form: {error}") from None
    except StructError as error:
        raise InvalidFieldError.of("message", f"has a number out of range: {error}") from None


def message_digest(message: Message) -> bytes:
    """Return SHA-256(m)."""
    return sha256(encode(message)).digest()


def extend(prefix: bytes, message_digest: bytes) -> bytes:
    """Return d(i+1) from d(i) and the digest of message i."""
    return sha256(prefix + message_digest).digest()


def prefix_digest(messages: Iterable[Message]) -> tuple[int, bytes, bool]:
    """Return (count, digest, leading_system) over messages, a leading system message left out."""
    count, digest, leading_system = 0, ZERO, False
    for index, message in enumerate(messages):
        if index == 0 and message.role == _SYSTEM:
            leading_system = True
            continue
        digest = extend(digest, message_digest(message))
        count += 1
    return count, digest, leading_system


def message_pieces(message: Message) -> list[bytes]:
    """Return the bytes m of a message of any role as pieces; of a system one too, whole."""
    content = message.content
    pieces = [_U32(message.role & 0xFFFF_FFFF)]
    if isinstance(content, tuple):
        pieces += parts_pieces(content)
    else:
        pieces.append(optional_text(content))
    pieces.append(_U32(len(message.tool_calls)))
    for call in message.tool_calls:
        pieces += map(optional_text, (call.id, call.name, call.arguments))
    pieces += map(optional_text, (message.tool_call_id, message.name))
    return pieces


def parts_pieces(parts: Sequence[Part]) -> list[bytes]:
    """Return the bytes of a content of parts as pieces."""
    pieces = [_BYTE_U32(2, len(parts))]
    for part in parts:
        pieces += _part(part)
    return pieces


def _part(part: Part) -> tuple[bytes, ...]:
    match part:
        case TextPart(text):
            return b"\x01", framed_text(text)
        case AttachmentPart(sha256=digest, media_type=media_type, name=name, size_bytes=size):
            stated = b"\x00" if size is None else b"\x01" + _U64(size)
            return b"\x02", _framed(digest), framed_text(media_type), optional_text(name), stated
        case ReasoningPart(text=str(text)):
            return b"\x03", framed_text(text)
        case ReasoningPart(json=str(text)):
            return b"\x04", framed_text(text)
        case ToolCallPart(index):
            return b"\x05", _U32(index)
        case OpaquePart(kind, text):
            return b"\x06", framed_text(kind), framed_text(text)
        case _:
            return (b"\x00",)


def _framed(data: bytes) -> bytes:
    return _U32(len(data)) + data


def framed_text(text: str) -> bytes:
    """Return str: the length in bytes, then the text in UTF-8."""
    return _framed(text.encode())


def optional_text(text: str | None) -> bytes:
    """Return opt: byte 0 for none, else byte 1 and str."""
    if text is None:
        return b"\x00"
    data = text.encode()
    return _BYTE_U32(1, len(data)) + data
