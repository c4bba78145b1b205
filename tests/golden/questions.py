"""What is asked of a golden database: everything that its sessions can answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldlog.v1 import event_pb2, service_pb2
from google.protobuf.message import Message

from tests.contract.attachments import digest_of
from tests.golden.exchanges import Recording
from tests.golden.story import LARGE, SESSIONS, SMALL

OF_A_SESSION = (
    "GetSession",
    "GetLineage",
    "GetMessages",
    "GetRequestHeader",
    "ListEvents",
    "WatchEvents",
    "VerifySession",
    "VerifyRequests",
    "ExplainRequest",
    "PlanRecovery",
)
DIFFERENT = (("compacted", "fork-of-fork"), ("everything", "import-of-everything"))


def ask_everything(recording: Recording) -> None:
    """Ask of every session, across sessions, and of attachments."""
    for session_id in SESSIONS:
        _ask_session(recording, session_id)
    for method, request in _across():
        recording.ask(method, request)
    for data in (SMALL, LARGE):
        request = service_pb2.GetAttachmentRequest(sha256=digest_of(data))
        recording.ask("GetAttachment", request)


def _ask_session(recording: Recording, session_id: str) -> None:
    for method in OF_A_SESSION:
        kind = getattr(service_pb2, f"{method}Request")
        recording.ask(method, kind(session_id=session_id))
    events = _answered(recording, "ListEvents")
    for event in events[0].get("events", []):
        _ask_seq(recording, session_id, int(event["seq"]), event["type"])


def _answered(recording: Recording, method: str) -> Any:
    return next(each.answers for each in reversed(recording.exchanges) if each.method == method)


def _ask_seq(recording: Recording, session_id: str, seq: int, type_: str) -> None:
    request = service_pb2.GetMessagesRequest(session_id=session_id, at_seq=seq)
    if type_ == event_pb2.EventType.Name(event_pb2.EVENT_TYPE_STEP_START):
        built = service_pb2.BuildRequestRequest(session_id=session_id, step_seq=seq)
        recording.ask("BuildRequest", built)
    if seq % 5 == 0:
        recording.ask("GetMessages", request)


def _across() -> Iterator[tuple[str, Message]]:
    sessions = service_pb2.ListSessionsRequest
    yield "ListSessions", sessions(page_size=1_000)
    yield "ListSessions", sessions(labels={"team": "blue"})
    yield "ListSessions", sessions(parent_session_id="compacted")
    yield "ListSessions", sessions(custom_kind="note", custom_key="key-a")
    yield "ListUnresolvedCalls", service_pb2.ListUnresolvedCallsRequest()
    yield "WatchAllEvents", service_pb2.WatchAllEventsRequest()
    heads = [digest_of(data) for data in (SMALL, LARGE, b"absent")]
    yield "HeadAttachments", service_pb2.HeadAttachmentsRequest(sha256=heads)
    for left, right in DIFFERENT:
        request = service_pb2.DiffSessionsRequest(left_session_id=left, right_session_id=right)
        yield "DiffSessions", request
