"""Operations that read a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from google.protobuf.message import Message as ProtoMessage

from foldlog.client.decoding import (
    event_from_proto,
    folded_from_proto,
    fork_point_from_proto,
    info_from_proto,
    verification_from_proto,
)
from foldlog.client.encoding import request
from foldlog.client.fitting import valid_session_id
from foldlog.client.methods import (
    DIFF_SESSIONS,
    GET_LINEAGE,
    GET_MESSAGES,
    GET_REQUEST_HEADER,
    GET_SESSION,
    LIST_EVENTS,
    VERIFY_SESSION,
    Answer,
    Method,
)
from foldlog.client.operations.checking import remember
from foldlog.client.retries import Attempts, unary
from foldlog.client.state import SessionState
from foldlog.client.steps import Emission, Emit, Failure, Open, Operation, Receive
from foldlog.client.stored import Event
from foldlog.client.values import Diff, FoldedMessage, ForkPoint, SessionInfo, Verification
from foldlog.codec import header_from_proto
from foldlog.core.header import Header
from foldlog.v1 import service_pb2 as pb


def info(session: SessionState, *, timeout_s: float | None = None) -> Operation[SessionInfo]:
    """Read the session's state."""
    asked = request(pb.GetSessionRequest, session_id=session.session_id)
    answer = yield from unary(session.client.attempts(timeout_s), GET_SESSION, asked)
    session.saw(answer.session.next_seq)
    return info_from_proto(answer.session)


def messages(
    session: SessionState,
    at_seq: int | None = None,
    *,
    min_next_seq: int | None = None,
    timeout_s: float | None = None,
) -> Operation[list[FoldedMessage]]:
    """Read the messages the model sees, now or right after at_seq; -1 is the empty log.

    With min_next_seq the service may answer from a fold that is at least as far without a look at
    its store; without, the answer has every write that was acknowledged before the call.
    """
    asked = request(
        pb.GetMessagesRequest,
        session_id=session.session_id,
        at_seq=at_seq,
        min_next_seq=min_next_seq,
    )
    pieces = yield from whole(session.client.attempts(timeout_s), GET_MESSAGES, asked)
    folded = [folded_from_proto(each) for piece in pieces for each in piece.messages]
    if at_seq is None and pieces:
        session.saw(pieces[-1].next_seq)
        remember(session, [each.message for each in folded], pieces[-1].digest)
    return folded


def header(
    session: SessionState, at_seq: int | None = None, *, timeout_s: float | None = None
) -> Operation[Header]:
    """Read the latest request header, now or right after at_seq. Raises HeaderMissingError."""
    asked = request(pb.GetRequestHeaderRequest, session_id=session.session_id, at_seq=at_seq)
    answer = yield from unary(session.client.attempts(timeout_s), GET_REQUEST_HEADER, asked)
    return header_from_proto(answer.header)


def events(
    session: SessionState,
    from_seq: int = 0,
    *,
    types: Iterable[int] = (),
    page_size: int = 0,
    timeout_s: float | None = None,
) -> Emission[Event]:
    """Iterate over the stored events from a seq, page by page, shadowed and undone ones marked.

    The timeout is that of each page.
    """
    asked = request(
        pb.ListEventsRequest,
        session_id=session.session_id,
        from_seq=from_seq,
        page_size=page_size,
        types=tuple(types),
    )
    while True:
        page = yield from unary(session.client.attempts(timeout_s), LIST_EVENTS, asked)
        for event in page.events:
            yield Emit(event_from_proto(event))
        if not page.next_page_token:
            return
        asked.page_token = page.next_page_token


def lineage(session: SessionState, *, timeout_s: float | None = None) -> Operation[list[ForkPoint]]:
    """List the sessions it was forked from, the nearest first, deleted ones too."""
    asked = request(pb.GetLineageRequest, session_id=session.session_id)
    answer = yield from unary(session.client.attempts(timeout_s), GET_LINEAGE, asked)
    session.saw(answer.next_seq)
    return [fork_point_from_proto(ancestor) for ancestor in answer.ancestors]


def diff(
    session: SessionState,
    other: SessionState | str,
    *,
    at_seq: int | None = None,
    other_at_seq: int | None = None,
    timeout_s: float | None = None,
) -> Operation[Diff]:
    """Compare the folds of this session (left) and another (right), given by object or id."""
    right_id = other if isinstance(other, str) else other.session_id
    asked = request(
        pb.DiffSessionsRequest,
        left_session_id=session.session_id,
        right_session_id=valid_session_id(right_id, "other"),
        left_at_seq=at_seq,
        right_at_seq=other_at_seq,
    )
    pieces = yield from whole(session.client.attempts(timeout_s), DIFF_SESSIONS, asked)
    summary = pieces[0].summary
    return Diff(
        common_count=summary.common_count,
        left=tuple(folded_from_proto(each) for piece in pieces for each in piece.left.messages),
        right=tuple(folded_from_proto(each) for piece in pieces for each in piece.right.messages),
        shared_seq=summary.shared_seq if summary.HasField("shared_seq") else None,
        left_next_seq=summary.left_next_seq,
        right_next_seq=summary.right_next_seq,
    )


def verify(
    session: SessionState,
    versions: Iterable[int] = (),
    *,
    include_deleted: bool = False,
    timeout_s: float | None = None,
) -> Operation[Verification]:
    """Have the service audit the session from its stored rows alone, and its lineage.

    `versions` name rows of the session itself whose recomputed chain values are wanted.
    """
    asked = request(
        pb.VerifySessionRequest,
        session_id=session.session_id,
        versions=tuple(versions),
        include_deleted=include_deleted,
    )
    answer = yield from unary(session.client.attempts(timeout_s), VERIFY_SESSION, asked)
    session.saw(answer.next_seq)
    return verification_from_proto(answer)


def whole(
    attempts: Attempts, method: Method[Answer], asked: ProtoMessage
) -> Operation[list[Answer]]:
    """Read a stream to its end, from the beginning again if it breaks."""
    while True:
        outcome = yield from _once(method, asked, attempts.remaining_s)
        if not isinstance(outcome, Failure):
            return outcome
        yield from attempts.after(outcome)


def _once(
    method: Method[Answer], asked: ProtoMessage, timeout_s: float
) -> Operation[list[Answer] | Failure]:
    pieces: list[Answer] = []
    stream = yield Open(method, asked, timeout_s)
    try:
        while True:
            piece = yield Receive(stream)
            if isinstance(piece, Failure):
                return piece
            if piece is None:
                return pieces
            pieces.append(cast(Answer, piece))
    finally:
        stream.cancel()
