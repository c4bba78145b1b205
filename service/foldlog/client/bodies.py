"""What an event can say, as values: a message, a bookkeeping body, or something newer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TypeAlias

from foldlog.codec import (
    header_from_proto,
    header_to_proto,
    message_from_proto,
    message_to_proto,
)
from foldlog.core.event import ToolCallPhase
from foldlog.core.header import Header, HeaderReason
from foldlog.core.message import Message
from foldlog.v1 import event_pb2


@dataclass(frozen=True, slots=True)
class ToolCallState:
    """A tool call's progress, as bookkeeping. The phase of a newer release stays a number."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    idempotency_key: str | None = None
    phase: int = ToolCallPhase.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens counted by the provider. None means not stated."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TurnStart:
    """A turn began."""

    number: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """A turn ended."""

    number: int | None = None
    reason: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class StepStart:
    """A step began: one request to the provider and what follows from it."""

    number: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A step ended."""

    number: int | None = None
    reason: str | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class HeaderSnapshot:
    """The request header from here on, in full."""

    header: Header
    reason: int = HeaderReason.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Rewind:
    """The log was taken back to what it was right after to_seq; -1 means none of it counts."""

    to_seq: int


@dataclass(frozen=True, slots=True)
class Custom:
    """Anything the worker wants to keep. Listings filter on kind and keys."""

    kind: str
    payload: bytes = b""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OneShot:
    """What a request beside the conversation was for, and the seqs it read, both ends in."""

    purpose: str
    provider: str = ""
    model: str = ""
    parameters_json: str = ""
    first_seq: int | None = None
    last_seq: int | None = None


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request was sent to a provider: where it was built, and what identifies it."""

    built_at_next_seq: int
    step_seq: int | None = None
    encoding_sha256: bytes = b""
    body_sha256: bytes = b""
    converter: str = ""
    converter_version: str = ""
    one_shot: OneShot | None = None


@dataclass(frozen=True, slots=True)
class UnknownBody:
    """A body of a newer release, as it is stored."""

    encoded: bytes = field(repr=False)


Body: TypeAlias = (
    Message
    | ToolCallState
    | TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | HeaderSnapshot
    | Rewind
    | Custom
    | SentRequest
    | UnknownBody
)
KNOWN_BODIES = (
    Message,
    ToolCallState,
    TurnStart,
    TurnEnd,
    StepStart,
    StepEnd,
    HeaderSnapshot,
    Rewind,
    Custom,
    SentRequest,
    UnknownBody,
)


def body_to_proto(body: Body) -> event_pb2.EventBody:
    """Return the wire's form. Raises ValueError or TypeError where a value does not fit it."""
    match body:
        case Message():
            return event_pb2.EventBody(message=message_to_proto(body))
        case ToolCallState():
            return event_pb2.EventBody(tool_call=_tool_call_to_proto(body))
        case TurnStart(number, reason):
            turn_start = event_pb2.TurnStart(number=number, reason=reason)
            return event_pb2.EventBody(turn_start=turn_start)
        case TurnEnd(number, reason, usage):
            turn_end = event_pb2.TurnEnd(number=number, reason=reason, usage=_usage(usage))
            return event_pb2.EventBody(turn_end=turn_end)
        case StepStart(number, reason):
            step_start = event_pb2.StepStart(number=number, reason=reason)
            return event_pb2.EventBody(step_start=step_start)
        case StepEnd(number, reason, usage):
            step_end = event_pb2.StepEnd(number=number, reason=reason, usage=_usage(usage))
            return event_pb2.EventBody(step_end=step_end)
        case HeaderSnapshot(header, why):
            return event_pb2.EventBody(request_header=header_to_proto(header, why))
        case Rewind(to_seq):
            return event_pb2.EventBody(rewind=event_pb2.Rewind(to_seq=to_seq))
        case Custom(kind, payload, keys):
            custom = event_pb2.Custom(kind=kind, payload=payload, keys=keys)
            return event_pb2.EventBody(custom=custom)
        case SentRequest():
            return event_pb2.EventBody(request=_sent_to_proto(body))
        case UnknownBody(encoded):
            return event_pb2.EventBody.FromString(encoded)


def _tool_call_to_proto(body: ToolCallState) -> event_pb2.ToolCallState:
    return event_pb2.ToolCallState(
        id=body.id,
        name=body.name,
        arguments=body.arguments,
        idempotency_key=body.idempotency_key,
        phase=body.phase,  # type: ignore[arg-type]
    )


def _usage(usage: Usage | None) -> event_pb2.Usage | None:
    if usage is None:
        return None
    return event_pb2.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def body_from_proto(pb: event_pb2.EventBody) -> Body:
    """Return the body; one of a kind this release does not know is an UnknownBody."""
    match pb.WhichOneof("kind"):
        case "message":
            return message_from_proto(pb.message)
        case "tool_call":
            return _tool_call_from_proto(pb.tool_call)
        case "turn_start":
            return TurnStart(_number(pb.turn_start), _reason(pb.turn_start))
        case "turn_end":
            end = pb.turn_end
            return TurnEnd(_number(end), _reason(end), _usage_from_proto(end))
        case "step_start":
            return StepStart(_number(pb.step_start), _reason(pb.step_start))
        case "step_end":
            step = pb.step_end
            return StepEnd(_number(step), _reason(step), _usage_from_proto(step))
        case "request_header":
            header = pb.request_header
            return HeaderSnapshot(header_from_proto(header), header.reason)
        case "rewind":
            return Rewind(pb.rewind.to_seq)
        case "request":
            return _sent_from_proto(pb.request)
        case "custom":
            return Custom(pb.custom.kind, pb.custom.payload, tuple(pb.custom.keys))
        case _:
            return UnknownBody(pb.SerializeToString())


def _tool_call_from_proto(pb: event_pb2.ToolCallState) -> ToolCallState:
    has = pb.HasField
    return ToolCallState(
        id=pb.id if has("id") else None,
        name=pb.name if has("name") else None,
        arguments=pb.arguments if has("arguments") else None,
        idempotency_key=pb.idempotency_key if has("idempotency_key") else None,
        phase=pb.phase,
    )


def _sent_to_proto(body: SentRequest) -> event_pb2.SentRequest:
    one_shot = body.one_shot
    return event_pb2.SentRequest(
        built_at_next_seq=body.built_at_next_seq,
        step_seq=body.step_seq,
        encoding_sha256=body.encoding_sha256,
        body_sha256=body.body_sha256,
        converter=body.converter,
        converter_version=body.converter_version,
        one_shot=None if one_shot is None else event_pb2.OneShot(**asdict(one_shot)),
    )


def _sent_from_proto(pb: event_pb2.SentRequest) -> SentRequest:
    return SentRequest(
        built_at_next_seq=pb.built_at_next_seq,
        step_seq=pb.step_seq if pb.HasField("step_seq") else None,
        encoding_sha256=pb.encoding_sha256,
        body_sha256=pb.body_sha256,
        converter=pb.converter,
        converter_version=pb.converter_version,
        one_shot=_one_shot_from_proto(pb.one_shot) if pb.HasField("one_shot") else None,
    )


def _one_shot_from_proto(pb: event_pb2.OneShot) -> OneShot:
    return OneShot(
        purpose=pb.purpose,
        provider=pb.provider,
        model=pb.model,
        parameters_json=pb.parameters_json,
        first_seq=pb.first_seq if pb.HasField("first_seq") else None,
        last_seq=pb.last_seq if pb.HasField("last_seq") else None,
    )


_Bound: TypeAlias = (
    event_pb2.TurnStart | event_pb2.TurnEnd | event_pb2.StepStart | event_pb2.StepEnd
)


def _number(pb: _Bound) -> int | None:
    return pb.number if pb.HasField("number") else None


def _reason(pb: _Bound) -> str | None:
    return pb.reason if pb.HasField("reason") else None


def _usage_from_proto(end: event_pb2.TurnEnd | event_pb2.StepEnd) -> Usage | None:
    if not end.HasField("usage"):
        return None
    pb = end.usage
    has = pb.HasField
    return Usage(
        input_tokens=pb.input_tokens if has("input_tokens") else None,
        output_tokens=pb.output_tokens if has("output_tokens") else None,
        cache_read_tokens=pb.cache_read_tokens if has("cache_read_tokens") else None,
        cache_write_tokens=pb.cache_write_tokens if has("cache_write_tokens") else None,
        reasoning_tokens=pb.reasoning_tokens if has("reasoning_tokens") else None,
    )
