"""What an append may hold. Judged once, before it is stored; each error names the field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from foldlog.core.canonical import check_free_json
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
    ToolCallPart,
)

SHA256_BYTES = 32
_TOOL = int(Role.TOOL)
ROLES = frozenset(role.value for role in Role if role is not Role.UNSPECIFIED)

# RFC 9110, section 8.3.1: type "/" subtype, then parameters.
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = rf'[ \t]*;[ \t]*{_TOKEN}=(?:{_TOKEN}|"(?:[^"\\]|\\.)*")'
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:{_PARAMETER})*")

TENANT_BYTES = 128
NAME_BYTES = 256


def validate_tenant(tenant: str) -> None:
    """Raise InvalidFieldError for what can be no tenant's name."""
    if not tenant or not tenant.isprintable() or len(tenant.encode()) > TENANT_BYTES:
        wrong = f"it is 1 to {TENANT_BYTES} bytes of printable UTF-8"
        raise InvalidFieldError.of("tenant", wrong)


def validate_name(name: str, field: str) -> None:
    """Raise InvalidFieldError for what can be no name that people read."""
    if not name.isprintable() or len(name.encode()) > NAME_BYTES:
        raise InvalidFieldError.of(field, f"it is at most {NAME_BYTES} bytes of printable UTF-8")


def validate_message(message: Message, max_json_depth: int = 128) -> None:
    """Raise InvalidFieldError, with the path in the wire's Message, for what no log may hold."""
    validate_speaker(message.role, message.tool_call_id is not None)
    if message.metadata_json is not None:
        check_free_json(message.metadata_json, "metadata_json", max_json_depth)
    if isinstance(message.content, tuple):
        for index, part in enumerate(message.content):
            _validate_part(part, f"parts.parts[{index}]", len(message.tool_calls), max_json_depth)


def validate_speaker(role: int, answers_call: bool) -> None:
    """Raise InvalidFieldError for an unknown role, or a tool that does not name the call."""
    if role not in ROLES:
        raise InvalidFieldError.of("role", f"{int(role)} is not a known role")
    if role == _TOOL and not answers_call:
        raise InvalidFieldError.of("tool_call_id", "is required for role tool")


def _validate_part(part: Part, path: str, tool_calls: int, max_json_depth: int) -> None:
    match part:
        case TextPart() | ReasoningPart(text=str()):
            return
        case ReasoningPart(json=str(json)):
            check_free_json(json, f"{path}.reasoning.json", max_json_depth)
        case ReasoningPart():
            raise InvalidFieldError.of(f"{path}.reasoning", "holds neither text nor JSON")
        case OpaquePart(kind, json):
            if not kind:
                raise InvalidFieldError.of(f"{path}.opaque.kind", "is required")
            check_free_json(json, f"{path}.opaque.json", max_json_depth)
        case AttachmentPart():
            _validate_attachment(part, f"{path}.attachment")
        case ToolCallPart(index):
            if not 0 <= index < tool_calls:
                wrong = f"{index} is past the message's {tool_calls} tool calls"
                raise InvalidFieldError.of(f"{path}.tool_call_index", wrong)
        case _:
            raise InvalidFieldError.of(path, "is of no kind that this release knows")


def _validate_attachment(part: AttachmentPart, path: str) -> None:
    validate_sha256(part.sha256, f"{path}.sha256")
    validate_media_type(part.media_type, f"{path}.media_type")


def validate_sha256(digest: bytes, path: str) -> None:
    """Raise InvalidFieldError unless a digest has its 32 bytes."""
    if len(digest) != SHA256_BYTES:
        raise InvalidFieldError.of(path, f"has {len(digest)} bytes, not {SHA256_BYTES}")


def validate_media_type(media_type: str, path: str) -> None:
    """Raise InvalidFieldError unless a media type has the form of one."""
    if _MEDIA_TYPE.fullmatch(media_type) is None:
        raise InvalidFieldError.of(path, "is not of the form type/subtype")


def validate_replace(range_: PositionRange, own_seq: int) -> None:
    """Raise InvalidFieldError unless 0 <= start <= stop < own_seq."""
    start, stop = range_.start, range_.stop
    if start < 0:
        raise InvalidFieldError.of("replace.positions.start", f"{start} is below 0")
    if start > stop:
        raise InvalidFieldError.of("replace.positions", f"start {start} is past stop {stop}")
    if stop >= own_seq:
        wrong = f"{stop} is not below the event's own seq, {own_seq}"
        raise InvalidFieldError.of("replace.positions.stop", wrong)


def validate_header(header: Header, max_json_depth: int = 128) -> None:
    """Raise InvalidFieldError unless the parameters are a JSON object and each tool is JSON."""
    if header.parameters_json:
        check_free_json(header.parameters_json, "parameters_json", max_json_depth)
        if not header.parameters_json.lstrip().startswith("{"):
            raise InvalidFieldError.of("parameters_json", "is not a JSON object")
    for index, tool in enumerate(header.tools_json):
        check_free_json(tool, f"tools_json[{index}]", max_json_depth)


def validate_custom(kind: str, keys: Sequence[str], max_keys: int, max_key_bytes: int) -> None:
    """Raise InvalidFieldError for no kind or too many keys, TooLargeError for too long a key."""
    if not kind:
        raise InvalidFieldError.of("kind", "is required")
    if len(keys) > max_keys:
        raise InvalidFieldError.of("keys", f"has {len(keys)} keys; the limit is {max_keys}")
    for index, key in enumerate(keys):
        _require_bytes(key, f"keys[{index}]", max_key_bytes)


def validate_session_id(session_id: str, limit: int = 512) -> None:
    """Raise unless the id has 1 to `limit` bytes of UTF-8, none of them NUL. Never normalised."""
    if not session_id:
        raise InvalidFieldError.of("session_id", "is empty")
    _require_bytes(session_id, "session_id", limit)
    if "\0" in session_id:
        raise InvalidFieldError.of("session_id", "holds NUL")


def validate_request_id(request_id: str, limit: int = 128) -> None:
    """Raise TooLargeError if the id has more than `limit` bytes. An empty one is none."""
    _require_bytes(request_id, "request_id", limit)


def validate_labels(labels: Mapping[str, str], max_count: int, max_bytes: int) -> None:
    """Raise TooLargeError for too many labels, or a key or a value of more than max_bytes."""
    if len(labels) > max_count:
        raise TooLargeError(field="labels", size=len(labels), limit=max_count)
    for key, value in labels.items():
        if not key:
            raise InvalidFieldError.of("labels", "has an empty key")
        _require_bytes(key, "labels", max_bytes)
        _require_bytes(value, f"labels[{key}]", max_bytes)


def _require_bytes(text: str, field: str, limit: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        wrong = f"has a lone surrogate at character {error.start}"
        raise InvalidFieldError.of(field, wrong) from None
    if size > limit:
        raise TooLargeError(field=field, size=size, limit=limit)
