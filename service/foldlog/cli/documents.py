"""What the commands print as JSON, and the messages they read from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    UnknownPart,
)

if TYPE_CHECKING:
    from foldlog.client.stored import Event, WatchItem
    from foldlog.client.values import Diff, FoldedMessage, SessionInfo
    from foldlog.core.invariant import Sketch, Violation

Document = dict[str, Any]
ROLE_NAMES: dict[int, str] = {role: role.name.lower() for role in Role if role}


def message_document(message: Message) -> Document:
    """Return a message with what it has; absent content and an empty text stay different."""
    content: object = message.content
    if isinstance(content, tuple):
        content = [part_document(part) for part in content]
    calls = [_given(id=c.id, name=c.name, arguments=c.arguments) for c in message.tool_calls]
    return _given(
        role=role_name(message.role),
        content=content,
        tool_calls=calls or None,
        tool_call_id=message.tool_call_id,
        name=message.name,
        reasoning=message.reasoning,
        metadata_json=message.metadata_json,
    )


def role_name(role: int) -> str:
    """Return a role's name in small letters, or the number of one this release does not know."""
    return ROLE_NAMES.get(role, f"role {role}")


def part_document(part: Part) -> Document:
    """Return a part of a content, its kind as `type`."""
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case AttachmentPart(sha256, media_type, name, size_bytes):
            about = _given(media_type=media_type, name=name, size_bytes=size_bytes)
            return {"type": "attachment", "sha256": sha256.hex(), **about}
        case ReasoningPart(text, json):
            return {"type": "reasoning", **_given(text=text, json=json)}
        case ToolCallPart(index):
            return {"type": "tool_call", "index": index}
        case OpaquePart(kind, json):
            return {"type": "opaque", "kind": kind, "json": json}
        case UnknownPart():
            return {"type": "unknown"}


def folded_document(folded: FoldedMessage) -> Document:
    """Return a message of the fold and where it stands."""
    where = _given(
        seq=folded.seq,
        position=folded.position,
        time=_time(folded.time_ns),
        group=folded.group,
    )
    return where | message_document(folded.message)


def _time(time_ns: int) -> str:
    """Return a time in UTC with all its nanoseconds."""
    from foldlog.codec import datetime_of

    seconds = datetime_of(time_ns).replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{seconds}.{time_ns % 1_000_000_000:09d}Z"


def event_document(event: Event) -> Document:
    """Return an event; its body is that of a message, or the fields of a bookkeeping event."""
    from foldlog.cli.events import body_document, type_name

    return _given(
        seq=event.seq,
        type=type_name(event.type),
        time=_time(event.time_ns),
        position=event.position,
        replaces=list(event.replace.shadowed_seqs) if event.replace else None,
        state=event.state.name.lower() if event.state else None,
        state_seq=event.state_seq,
        dropped=event.dropped or None,
        body=body_document(event),
    )


def watch_document(item: WatchItem) -> Document:
    """Return an element of a watch."""
    from foldlog.client.stored import CaughtUp, Event, HistoryDropped

    match item:
        case Event():
            return event_document(item)
        case CaughtUp(next_seq):
            return {"caught_up": {"next_seq": next_seq}}
        case HistoryDropped(whole_from_seq, dropped):
            return {"history_dropped": {"whole_from_seq": whole_from_seq, "dropped": dropped}}
    return {"deleted": True}


def diff_document(found: Diff) -> Document:
    """Return a comparison of two folds."""
    return _given(
        common_count=found.common_count,
        shared_seq=found.shared_seq,
        left=[folded_document(each) for each in found.left],
        right=[folded_document(each) for each in found.right],
        left_next_seq=found.left_next_seq,
        right_next_seq=found.right_next_seq,
    )


def session_document(info: SessionInfo) -> Document:
    """Return a session's state."""
    parent = info.parent
    return _given(
        session_id=info.session_id,
        next_seq=info.next_seq,
        labels=dict(info.labels),
        metadata_json=info.metadata_json or None,
        create_time=_time(info.create_time_ns),
        update_time=_time(info.update_time_ns),
        parent={"session_id": parent.session_id, "at_seq": parent.at_seq} if parent else None,
        writer_epoch=info.writer_epoch or None,
        open_turn_seq=info.open_turn_seq,
        whole_from_seq=info.whole_from_seq or None,
    )


def violation_document(violation: Violation) -> Document:
    """Return a violation, with the names of the wire."""
    return _given(
        kind=violation.kind.name,
        index=violation.index,
        request_length=violation.request_length,
        log_length=violation.log_length,
        extra=[_sketch_document(each) for each in violation.extra],
        missing=[_sketch_document(each) for each in violation.missing],
        tool_call_id=violation.tool_call_id,
        header_fields=list(violation.header_fields),
        log_seq=violation.log_seq,
    )


def _sketch_document(sketch: Sketch) -> Document:
    return _given(
        role=role_name(sketch.role),
        preview=sketch.preview,
        tool_calls=sketch.tool_calls,
        tool_call_id=sketch.tool_call_id,
        name=sketch.name,
    )


def _given(**fields: Any) -> Document:
    return {name: value for name, value in fields.items() if value is not None}


def message_from_document(document: Mapping[str, Any]) -> Message:
    """Return the message of a document as `message_document` makes it; other keys are ignored.

    Raises ValueError that says what is wrong.
    """
    from foldlog.core.message import ToolCall

    content = document.get("content")
    if isinstance(content, list):
        content = tuple(_part(each) for each in content)
    calls = (_object(call, "a tool call") for call in document.get("tool_calls") or ())
    return Message(
        _role(document.get("role")),
        content,
        tuple(ToolCall(c.get("id"), c.get("name"), c.get("arguments")) for c in calls),
        *(document.get(k) for k in ("tool_call_id", "name", "reasoning", "metadata_json")),
    )


def _role(name: object) -> Role:
    for role, known in ROLE_NAMES.items():
        if name == known:
            return Role(role)
    raise ValueError(f"a role is one of {', '.join(ROLE_NAMES.values())}, not {name!r}")


def _part(document: object) -> Part:
    given = _object(document, "a part")
    match given.get("type"):
        case "text":
            return TextPart(given["text"])
        case "attachment":
            about = (given["media_type"], given.get("name"), given.get("size_bytes"))
            return AttachmentPart(bytes.fromhex(given["sha256"]), *about)
        case "reasoning":
            return ReasoningPart(given.get("text"), given.get("json"))
        case "tool_call":
            return ToolCallPart(given["index"])
        case "opaque":
            return OpaquePart(given["kind"], given["json"])
    raise ValueError(f"a part has a type such as text, not {given.get('type')!r}")


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is a JSON object, not {value!r}")
    return value
