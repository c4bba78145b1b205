"""Messages as the wire has them, judged and digested: a value is made of few of them.

Making one costs more than all else that is done with most messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct

from google.protobuf.message import Message as Proto

from foldlog.codec import message_from_proto, part_from_proto
from foldlog.core.canonical import check_free_json
from foldlog.core.digest import SYSTEM_DIGEST, optional_text, parts_pieces
from foldlog.core.message import Role
from foldlog.core.validation import validate_message, validate_speaker
from foldlog.v1.message_pb2 import Message, ToolCall

MOST_KNOWN = 50_000  # some 12 MB

_U32 = Struct(">I").pack
_UNSET = optional_text(None)
_NO_CALLS = _U32(0)
_SYSTEM = int(Role.SYSTEM)


def judge_message(pb: Message, max_json_depth: int) -> None:
    """Raise what validate_message raises for the message's value."""
    if pb.HasField("parts"):
        validate_message(message_from_proto(pb), max_json_depth)
        return
    validate_speaker(pb.role, pb.HasField("tool_call_id"))
    if pb.HasField("metadata_json"):
        check_free_json(pb.metadata_json, "metadata_json", max_json_depth)


def digest_of(pb: Message) -> bytes:
    """Return the message_digest of the message's value."""
    if pb.role == _SYSTEM:
        return SYSTEM_DIGEST
    return sha256(
        _U32(pb.role & 0xFFFF_FFFF)
        + _content(pb)
        + _calls(pb.tool_calls)
        + _text(pb.tool_call_id, pb, "tool_call_id")
        + _text(pb.name, pb, "name")
    ).digest()


class Digests:
    """Digests of messages, remembered by those of their encodings, which cost half as much to make.

    Who checks whole requests sends most of each message again. Any thread may ask.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}

    def of(self, pb: Message) -> bytes:
        """Return the digest_of a message."""
        encoding = sha256(pb.SerializeToString()).digest()
        known = self._known.get(encoding)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[encoding] = digest_of(pb)
        return known


def call_ids_of(pb: Message) -> tuple[str | None, ...]:
    """Return the ids of the message's tool calls, in order."""
    return tuple([call.id if call.HasField("id") else None for call in pb.tool_calls])


def _content(pb: Message) -> bytes:
    if not pb.HasField("parts"):
        return _text(pb.text, pb, "text")
    return b"".join(parts_pieces([part_from_proto(part) for part in pb.parts.parts]))


def _calls(calls: Sequence[ToolCall]) -> bytes:
    if not calls:
        return _NO_CALLS
    pieces = [_U32(len(calls))]
    for call in calls:
        pieces.append(_text(call.id, call, "id"))
        pieces.append(_text(call.name, call, "name"))
        pieces.append(_text(call.arguments, call, "arguments"))
    return b"".join(pieces)


def _text(text: str, pb: Proto, field: str) -> bytes:
    # One that is not empty is set: that need not be asked.
    return optional_text(text) if text or pb.HasField(field) else _UNSET
