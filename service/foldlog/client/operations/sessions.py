"""Operations of a client: make, find and list sessions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from foldlog.client.decoding import info_from_proto
from foldlog.client.encoding import request
from foldlog.client.fitting import valid_session_id
from foldlog.client.methods import CREATE_SESSION, GET_SESSION, LIST_SESSIONS
from foldlog.client.retries import unary
from foldlog.client.state import ClientState, S, new_request_id
from foldlog.client.steps import Emission, Emit, Operation
from foldlog.client.values import SessionInfo
from foldlog.codec import time_ns_of, time_to_proto
from foldlog.v1 import service_pb2 as pb


def create(
    client: ClientState[S],
    session_id: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    metadata_json: str = "",
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[S]:
    """Create a session and return its object. Without an id the service makes one."""
    if session_id is not None:
        valid_session_id(session_id)
    asked = request(
        pb.CreateSessionRequest,
        session_id=session_id,
        request_id=new_request_id(request_id),
        labels=labels,
        metadata_json=metadata_json,
    )
    answer = yield from unary(client.attempts(timeout_s), CREATE_SESSION, asked)
    session = client.session(answer.session.session_id)
    session.saw(answer.next_seq)
    return session


def get(
    client: ClientState[S], session_id: str, *, timeout_s: float | None = None
) -> Operation[SessionInfo]:
    """Read a session's state. Raises SessionNotFoundError, SessionDeletedError."""
    asked = request(pb.GetSessionRequest, session_id=valid_session_id(session_id))
    answer = yield from unary(client.attempts(timeout_s), GET_SESSION, asked)
    return info_from_proto(answer.session)


def list_sessions(
    client: ClientState[S],
    *,
    labels: Mapping[str, str] | None = None,
    parent: str = "",
    custom_key: str = "",
    custom_kind: str = "",
    created_from: datetime | int | None = None,
    created_before: datetime | int | None = None,
    updated_from: datetime | int | None = None,
    page_size: int = 0,
    timeout_s: float | None = None,
) -> Emission[SessionInfo]:
    """Iterate over sessions, newest created first, asking page by page.

    All filters given must match; with custom_key and custom_kind, one custom event must have both.
    Times have a zone, or are nanoseconds since 1970. The timeout is that of each page.
    """
    asked = request(
        pb.ListSessionsRequest,
        page_size=page_size,
        labels=labels,
        parent_session_id=parent,
        custom_key=custom_key,
        custom_kind=custom_kind,
        created_from_time=_time("created_from", created_from),
        created_before_time=_time("created_before", created_before),
        updated_from_time=_time("updated_from", updated_from),
    )
    while True:
        page = yield from unary(client.attempts(timeout_s), LIST_SESSIONS, asked)
        for session in page.sessions:
            yield Emit(info_from_proto(session))
        if not page.next_page_token:
            return
        asked.page_token = page.next_page_token


def _time(field: str, time: datetime | int | None) -> Timestamp | None:
    return None if time is None else time_to_proto(time_ns_of(time, field), field)
