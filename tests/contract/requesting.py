"""The calls around requests, in short forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foldlog.v1 import event_pb2, message_pb2, service_pb2

from tests.contract.calls import DEADLINE_S, Calls

HEADER = event_pb2.RequestHeader(provider="p", model="m", system_prompt="Be brief.")
INITIAL = event_pb2.HEADER_REASON_INITIAL
RESUME = event_pb2.HEADER_REASON_RESUME
CHANGE = event_pb2.HEADER_REASON_CHANGE


@dataclass(frozen=True)
class Request:
    """A request as the service gave it."""

    about: service_pb2.BuiltRequest
    folded: list[Any]

    @property
    def messages(self) -> list[message_pb2.Message]:
        """Its messages."""
        return [each.message for each in self.folded]

    @property
    def texts(self) -> list[str]:
        """The texts of its messages."""
        return [each.text for each in self.messages]

    @property
    def sha256(self) -> bytes:
        """The SHA-256 of its encoding."""
        return self.about.encoding_sha256


@dataclass(frozen=True)
class Begun:
    """A step that began, and its request."""

    step: service_pb2.BegunStep
    request: Request


def begin(log: Calls, *events: event_pb2.NewEvent, **fields: Any) -> Begun:
    """Begin a step."""
    asked = service_pb2.BeginStepRequest(session_id=log.session_id, events=events, **fields)
    first, *rest = list(log.stub.BeginStep(asked, timeout=DEADLINE_S))
    return Begun(first.step, Request(first.step.request, _messages(rest)))


def rebuilt(log: Calls, **fields: Any) -> Request:
    """Build a request again."""
    asked = service_pb2.BuildRequestRequest(session_id=log.session_id, **fields)
    first, *rest = list(log.stub.BuildRequest(asked, timeout=DEADLINE_S))
    return Request(first.request, _messages(rest))


def _messages(pieces: list[Any]) -> list[Any]:
    return [each for piece in pieces for each in piece.messages.messages]


def record_header(log: Calls, header: event_pb2.RequestHeader = HEADER, **fields: Any) -> Any:
    """Record a header and return the answer."""
    asked = service_pb2.RecordHeaderRequest(session_id=log.session_id, header=header, **fields)
    return log.stub.RecordHeader(asked, timeout=DEADLINE_S)


def record(log: Calls, sent: event_pb2.SentRequest, **fields: Any) -> Any:
    """Record a sent request and return the answer."""
    asked = service_pb2.RecordRequestRequest(session_id=log.session_id, sent=sent, **fields)
    return log.stub.RecordRequest(asked, timeout=DEADLINE_S)


def sent_of(request: Request, **fields: Any) -> event_pb2.SentRequest:
    """Return what is recorded of a request."""
    about = request.about
    return event_pb2.SentRequest(
        built_at_next_seq=about.built_at_next_seq,
        step_seq=about.step_seq if about.HasField("step_seq") else None,
        encoding_sha256=about.encoding_sha256,
        **fields,
    )


def verified(log: Calls, from_seq: int = 0) -> Any:
    """Have the recorded requests made again and return the answer."""
    asked = service_pb2.VerifyRequestsRequest(session_id=log.session_id, from_seq=from_seq)
    return log.stub.VerifyRequests(asked, timeout=DEADLINE_S)


def explained(log: Calls, step_seq: int | None = None, **fields: Any) -> Any:
    """Ask how requests follow one another and return the answer."""
    asked = service_pb2.ExplainRequestRequest(
        session_id=log.session_id, step_seq=step_seq, **fields
    )
    return log.stub.ExplainRequest(asked, timeout=DEADLINE_S)


def change_of(log: Calls, step_seq: int) -> service_pb2.RequestChange:
    """Return how a step's request departs from the one before."""
    (change,) = explained(log, step_seq).changes
    found: service_pb2.RequestChange = change
    return found
