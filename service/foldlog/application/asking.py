"""Steps that are asked for: judged by themselves, not yet on any head."""

from __future__ import annotations

from dataclasses import dataclass

from foldlog.application.headers import Headers
from foldlog.application.incoming import Incoming, incoming_events, require_size
from foldlog.core.errors import InvalidFieldError
from foldlog.core.event import EventType
from foldlog.internal.v1.raw_pb2 import RawBeginStepRequest
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import EventBody, RequestHeader, StepStart


@dataclass(frozen=True, slots=True)
class Asked:
    """A step to begin, judged by itself. `header` is None where the one in force is to stay."""

    session_id: str
    start: Incoming
    events: list[Incoming]
    header: RequestHeader | None
    skip_unchanged: bool


def asked_of(request: RawBeginStepRequest, headers: Headers, limits: Limits) -> Asked:
    """Return the step that a request asks for. Raises InvalidFieldError or TooLargeError."""
    if request.skip < 0:
        raise InvalidFieldError.of("skip", f"{request.skip} is below 0")
    require_size("events", len(request.events) + 2, limits.batch_events)
    events = incoming_events(request.events, limits) if request.events else []
    for index, event in enumerate(events):
        if event.type is EventType.STEP_START:
            path = f"events[{index}].body.step_start"
            raise InvalidFieldError.of(path, "a call begins one step")
    header = request.header if request.HasField("header") else None
    if header is not None:
        headers.judge(header)
    start = Incoming(EventType.STEP_START, _start(request))
    return Asked(request.session_id, start, events, header, request.skip_unchanged)


def _start(request: RawBeginStepRequest) -> bytes:
    start = StepStart()
    if request.HasField("number"):
        start.number = request.number
    if request.HasField("reason"):
        start.reason = request.reason
    return EventBody(step_start=start).SerializeToString(deterministic=True)


def as_events(error: InvalidFieldError) -> InvalidFieldError:
    """Return an error of a step's batch as one of the events that were given: one less in front."""
    fields = {}
    for path, wrong in error.fields.items():
        index, bracket, rest = path.removeprefix("events[").partition("]")
        named = path.startswith("events[") and bracket and index.isdecimal()
        fields[f"events[{int(index) - 1}]{rest}" if named else path] = wrong
    return InvalidFieldError(fields=fields)


def content_of(request: RawBeginStepRequest) -> bytes:
    """Return what tells whether two requests ask for the same step."""
    asked = RawBeginStepRequest()
    asked.CopyFrom(request)
    for name in ("session_id", "request_id", "expected_next_seq", "writer_epoch", "skip"):
        asked.ClearField(name)
    return asked.SerializeToString(deterministic=True)
