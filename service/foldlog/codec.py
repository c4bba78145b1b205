"""Between the wire's messages and the core's values, for the server and the client alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header
from foldlog.core.invariant import Sketch, Violation, ViolationKind
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
)
from foldlog.v1 import check_pb2, event_pb2, message_pb2

NS_PER_S = 1_000_000_000
YEAR_1_S = -62_135_596_800
YEAR_10000_S = 253_402_300_800
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def message_from_proto(pb: message_pb2.Message) -> Message:
    """Return the message, presence kept. Unknown roles stay numbers, unknown parts UnknownPart.

    A creation time is not part of the value.
    """
    has = pb.HasField
    content: str | tuple[Part, ...] | None = None
    kind = pb.WhichOneof("content")
    if kind == "text":
        content = pb.text
    elif kind == "parts":
        content = tuple([part_from_proto(part) for part in pb.parts.parts])
    return Message(
        pb.role,
        content,
        tuple([_tool_call_from_proto(call) for call in pb.tool_calls]),
        pb.tool_call_id if has("tool_call_id") else None,
        pb.name if has("name") else None,
        pb.reasoning if has("reasoning") else None,
        pb.metadata_json if has("metadata_json") else None,
    )


def part_from_proto(pb: message_pb2.Part) -> Part:
    """Return the part; one without a kind this release knows is an UnknownPart."""
    match pb.WhichOneof("kind"):
        case "text":
            return TextPart(pb.text)
        case "attachment":
            return _attachment_from_proto(pb.attachment)
        case "reasoning":
            kind = pb.reasoning.WhichOneof("kind")
            return ReasoningPart(
                text=pb.reasoning.text if kind == "text" else None,
                json=pb.reasoning.json if kind == "json" else None,
            )
        case "tool_call_index":
            return ToolCallPart(pb.tool_call_index)
        case "opaque":
            return OpaquePart(pb.opaque.kind, pb.opaque.json)
        case _:
            return UnknownPart()


def _attachment_from_proto(pb: message_pb2.AttachmentRef) -> AttachmentPart:
    return AttachmentPart(
        sha256=pb.sha256,
        media_type=pb.media_type,
        name=pb.name if pb.HasField("name") else None,
        size_bytes=pb.size_bytes if pb.HasField("size_bytes") else None,
    )


def _tool_call_from_proto(pb: message_pb2.ToolCall) -> ToolCall:
    has = pb.HasField
    return ToolCall(
        pb.id if has("id") else None,
        pb.name if has("name") else None,
        pb.arguments if has("arguments") else None,
    )


def message_to_proto(message: Message) -> message_pb2.Message:
    """Return the wire's form.

    Raises ValueError or TypeError where a value does not fit the wire: a lone surrogate, say.
    """
    pb = message_pb2.Message(
        role=message.role,  # type: ignore[arg-type]
        tool_calls=[
            message_pb2.ToolCall(id=call.id, name=call.name, arguments=call.arguments)
            for call in message.tool_calls
        ],
        tool_call_id=message.tool_call_id,
        name=message.name,
        reasoning=message.reasoning,
        metadata_json=message.metadata_json,
    )
    if isinstance(message.content, str):
        pb.text = message.content
    elif message.content is not None:
        pb.parts.SetInParent()
        pb.parts.parts.extend([part_to_proto(part) for part in message.content])
    return pb


def part_to_proto(part: Part) -> message_pb2.Part:
    """Return the wire's form; an UnknownPart becomes a part without a kind."""
    match part:
        case TextPart(text):
            return message_pb2.Part(text=text)
        case AttachmentPart(sha256, media_type, name, size_bytes):
            attachment = message_pb2.AttachmentRef(
                sha256=sha256, media_type=media_type, name=name, size_bytes=size_bytes
            )
            return message_pb2.Part(attachment=attachment)
        case ReasoningPart():
            return message_pb2.Part(reasoning=_reasoning_to_proto(part))
        case ToolCallPart(index):
            return message_pb2.Part(tool_call_index=index)
        case OpaquePart(kind, json):
            return message_pb2.Part(opaque=message_pb2.OpaquePart(kind=kind, json=json))
        case UnknownPart():
            return message_pb2.Part()
    raise TypeError(f"{type(part).__name__} is not a part")


def _reasoning_to_proto(part: ReasoningPart) -> message_pb2.Reasoning:
    if part.text is not None and part.json is not None:
        raise ValueError("reasoning is either text or JSON, not both")
    if part.json is not None:
        return message_pb2.Reasoning(json=part.json)
    if part.text is not None:
        return message_pb2.Reasoning(text=part.text)
    return message_pb2.Reasoning()


def header_from_proto(pb: event_pb2.RequestHeader) -> Header:
    """Return the header. The reason why it was written is not part of the value."""
    return Header(
        provider=pb.provider,
        model=pb.model,
        parameters_json=pb.parameters_json,
        system_prompt=pb.system_prompt,
        tools_json=tuple(pb.tools_json),
        reasoning_effort=pb.reasoning_effort,
    )


def header_to_proto(header: Header, reason: int = 0) -> event_pb2.RequestHeader:
    """Return the wire's form, with why it is written. Raises as message_to_proto does."""
    return event_pb2.RequestHeader(
        provider=header.provider,
        model=header.model,
        parameters_json=header.parameters_json,
        system_prompt=header.system_prompt,
        tools_json=header.tools_json,
        reason=reason,  # type: ignore[arg-type]
        reasoning_effort=header.reasoning_effort,
    )


def violation_from_proto(pb: check_pb2.Violation) -> Violation:
    """Return the violation. A kind of a newer release is UNSPECIFIED."""
    return Violation(
        kind=_kind_from_proto(pb.kind),
        index=pb.index,
        request_length=pb.request_length,
        log_length=pb.log_length,
        extra=tuple(_sketch_from_proto(sketch) for sketch in pb.extra),
        missing=tuple(_sketch_from_proto(sketch) for sketch in pb.missing),
        tool_call_id=pb.tool_call_id if pb.HasField("tool_call_id") else None,
        header_fields=tuple(pb.header_fields),
        log_seq=pb.log_seq if pb.HasField("log_seq") else None,
    )


def _kind_from_proto(number: int) -> ViolationKind:
    try:
        return ViolationKind(number)
    except ValueError:
        return ViolationKind.UNSPECIFIED


def violation_to_proto(violation: Violation) -> check_pb2.Violation:
    """Return the wire's form."""
    return check_pb2.Violation(
        kind=int(violation.kind),  # type: ignore[arg-type]
        index=violation.index,
        request_length=violation.request_length,
        log_length=violation.log_length,
        extra=[_sketch_to_proto(sketch) for sketch in violation.extra],
        missing=[_sketch_to_proto(sketch) for sketch in violation.missing],
        tool_call_id=violation.tool_call_id,
        header_fields=violation.header_fields,
        log_seq=violation.log_seq,
    )


def _sketch_from_proto(pb: check_pb2.Sketch) -> Sketch:
    has = pb.HasField
    return Sketch(
        role=pb.role,
        preview=pb.preview if has("preview") else None,
        tool_calls=pb.tool_calls,
        tool_call_id=pb.tool_call_id if has("tool_call_id") else None,
        name=pb.name if has("name") else None,
    )


def _sketch_to_proto(sketch: Sketch) -> check_pb2.Sketch:
    return check_pb2.Sketch(
        role=sketch.role,  # type: ignore[arg-type]
        preview=sketch.preview,
        tool_calls=sketch.tool_calls,
        tool_call_id=sketch.tool_call_id,
        name=sketch.name,
    )


def time_from_proto(pb: Timestamp, field: str = "time") -> int:
    """Return nanoseconds since 1970, UTC.

    Raises InvalidFieldError naming the field if it lies outside of years 1 to 9999.
    """
    if not (YEAR_1_S <= pb.seconds < YEAR_10000_S and 0 <= pb.nanos < NS_PER_S):
        raise InvalidFieldError.of(field, "is outside of years 1 to 9999")
    return pb.seconds * NS_PER_S + pb.nanos


def time_to_proto(time_ns: int, field: str = "time") -> Timestamp:
    """Return the timestamp of nanoseconds since 1970, UTC. Raises as time_from_proto does."""
    seconds, nanos = divmod(time_ns, NS_PER_S)
    if not YEAR_1_S <= seconds < YEAR_10000_S:
        raise InvalidFieldError.of(field, "is outside of years 1 to 9999")
    return Timestamp(seconds=seconds, nanos=nanos)


def time_ns_of(time: datetime | int, field: str = "time") -> int:
    """Return nanoseconds since 1970, UTC, of a time with a zone; an integer is that already."""
    if isinstance(time, int):
        return time
    if time.tzinfo is None:
        raise InvalidFieldError.of(field, "has no time zone")
    return (time - EPOCH) // timedelta(microseconds=1) * 1_000


def datetime_of(time_ns: int) -> datetime:
    """Return the time in UTC, cut to whole microseconds."""
    return EPOCH + timedelta(microseconds=time_ns // 1_000)
