"""Bookkeeping events in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from foldlog.client.bodies import (
    Custom,
    HeaderSnapshot,
    Rewind,
    SentRequest,
    StepEnd,
    StepStart,
    ToolCallState,
    TurnEnd,
    TurnStart,
    UnknownBody,
    Usage,
)
from foldlog.core.event import EventType, ToolCallPhase
from foldlog.core.message import Message

if TYPE_CHECKING:
    from foldlog.client.stored import Event

TYPE_NAMES: dict[int, str] = {each: each.name.lower() for each in EventType}
PHASE_NAMES: dict[int, str] = {each: each.name.lower() for each in ToolCallPhase}


def type_name(number: int) -> str:
    """Return an event type's name in small letters, or the number of an unknown one."""
    return TYPE_NAMES.get(number, f"type {number}")


def described(body: object) -> str:
    """Return one line that says what a bookkeeping event says."""
    match body:
        case TurnStart(number, reason) | StepStart(number, reason):
            return _boundary(_span(body), "begins", number, reason)
        case TurnEnd(number, reason, usage) | StepEnd(number, reason, usage):
            return _boundary(_span(body), "ends", number, reason, usage_text(usage))
        case ToolCallState(id, name, phase=phase):
            return f"call {name or ''} {phase_name(phase)}".replace("  ", " ") + _bracketed(id)
        case HeaderSnapshot(header):
            tools = f", {len(header.tools_json)} tools" if header.tools_json else ""
            return f"request header: {header.provider} {header.model}{tools}".replace("  ", " ")
        case Rewind(to_seq):
            return f"rewind to {to_seq}" if to_seq >= 0 else "rewind to the empty log"
        case SentRequest():
            return _sent(body)
        case Custom(kind, payload, keys):
            return f"custom {kind}, {len(payload)} bytes{_bracketed(' '.join(keys))}"
    return "an event of a newer release"


def _sent(body: SentRequest) -> str:
    if body.one_shot is not None:
        return f"request sent: {body.one_shot.purpose} {body.one_shot.model}".rstrip()
    step = "" if body.step_seq is None else f" of step {body.step_seq}"
    return f"request sent{step}, built at {body.built_at_next_seq}"


def heading(body: TurnStart | StepStart) -> str:
    """Return what stands over a turn or a step, such as `turn 3 · user`."""
    numbered = _span(body) if body.number is None else f"{_span(body)} {body.number}"
    return f"{numbered} · {body.reason}" if body.reason else numbered


def _span(body: object) -> str:
    return "turn" if isinstance(body, TurnStart | TurnEnd) else "step"


def _boundary(span: str, verb: str, number: int | None, reason: str | None, used: str = "") -> str:
    numbered = span if number is None else f"{span} {number}"
    return ", ".join(filter(None, (f"{numbered} {verb}", reason, used)))


def _bracketed(text: str | None) -> str:
    return f" [{text}]" if text else ""


def phase_name(phase: int) -> str:
    """Return where a tool call has got to."""
    return PHASE_NAMES.get(phase, f"phase {phase}")


def usage_text(usage: Usage | None) -> str:
    """Return tokens as a person reads them, such as `1,204 in (900 cached), 88 out`."""
    if usage is None:
        return ""
    said = []
    if usage.input_tokens is not None:
        cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
        said.append(f"{usage.input_tokens:,} in{cached}")
    if usage.output_tokens is not None:
        said.append(f"{usage.output_tokens:,} out")
    return ", ".join(said)


def body_document(event: Event) -> dict[str, Any] | None:
    """Return an event's body for JSON; None where history was dropped."""
    import base64

    from foldlog.cli.documents import message_document

    match event.body:
        case None:
            return None
        case Message() as message:
            return message_document(message)
        case UnknownBody(encoded):
            return {"encoded_base64": base64.b64encode(encoded).decode()}
        case Custom(kind, payload, keys):
            return {
                "kind": kind,
                "payload_base64": base64.b64encode(payload).decode(),
                "keys": list(keys),
            }
        case SentRequest() as sent:
            digests = {"encoding_sha256": sent.encoding_sha256, "body_sha256": sent.body_sha256}
            return asdict(sent) | {name: digest.hex() for name, digest in digests.items()}
        case body:
            return asdict(body)
