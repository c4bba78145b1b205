"""Operations after a crash: plan, take over, list calls of unknown outcome; ranges to replace."""

from __future__ import annotations

from foldlog.client.encoding import request
from foldlog.client.fitting import valid_session_id
from foldlog.client.methods import (
    LIST_UNRESOLVED_CALLS,
    PLAN_RECOVERY,
    RECOVER_SESSION,
    SUGGEST_RANGE,
)
from foldlog.client.operations.reading import messages
from foldlog.client.recovery import (
    Recovery,
    RecoveryPlan,
    SuggestedRange,
    UnresolvedCall,
    plan_from_proto,
    recovery_from_proto,
    suggested_from_proto,
    unresolved_from_proto,
)
from foldlog.client.retries import unary
from foldlog.client.state import ClientState, S, SessionState, new_request_id
from foldlog.client.steps import Emission, Emit, Operation
from foldlog.v1 import event_pb2
from foldlog.v1 import service_pb2 as pb


def plan_recovery(
    session: SessionState, *, timeout_s: float | None = None
) -> Operation[RecoveryPlan]:
    """Say which turns and which step are open, and which calls have no result. Changes nothing."""
    asked = request(pb.PlanRecoveryRequest, session_id=session.session_id)
    answer = yield from unary(session.client.attempts(timeout_s), PLAN_RECOVERY, asked)
    session.saw(answer.next_seq)
    return plan_from_proto(answer)


def recover(
    session: SessionState,
    owner: str = "",
    expected_epoch: int | None = None,
    *,
    close_open_turns: bool = True,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Recovery]:
    """Take the session over: start a writer epoch, and close what is open, in one batch.

    Each call on the surface that is owed a result gets one that is marked as synthetic; then the
    open step and the open turns end. This object sends the epoch with each write from now on, and
    keeps the answer as `recovery`. An expected_epoch of 0 means that none is in force; None takes
    over whatever is. Raises StaleWriterError.
    """
    asked = request(
        pb.RecoverSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        expected_epoch=expected_epoch,
        owner=owner,
        close_open_turns=close_open_turns,
    )
    answer = yield from unary(session.client.attempts(timeout_s), RECOVER_SESSION, asked)
    session.writer_epoch = answer.writer_epoch
    session.saw(answer.next_seq)
    seen = yield from messages(session, timeout_s=timeout_s)
    session.recovery = recovery_from_proto(answer, seen)
    return session.recovery


def restore(
    client: ClientState[S],
    session_id: str,
    owner: str = "",
    expected_epoch: int | None = None,
    *,
    close_open_turns: bool = True,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[S]:
    """Take a session over and return its object, ready to go on; `recover` says how.

    The object's `recovery` has the header, the messages and what was open.
    """
    session = client.session(session_id)
    yield from recover(
        session,
        owner,
        expected_epoch,
        close_open_turns=close_open_turns,
        request_id=request_id,
        timeout_s=timeout_s,
    )
    return session


def unresolved_calls(
    client: ClientState[S],
    session_id: str | None = None,
    *,
    page_size: int = 0,
    timeout_s: float | None = None,
) -> Emission[UnresolvedCall]:
    """Iterate over calls that were dispatched and of which nothing more is known, the oldest first.

    Those of one session, or of all. The timeout is that of each page.
    """
    if session_id is not None:
        valid_session_id(session_id)
    asked = request(pb.ListUnresolvedCallsRequest, page_size=page_size, session_id=session_id)
    while True:
        page = yield from unary(client.attempts(timeout_s), LIST_UNRESOLVED_CALLS, asked)
        for call in page.calls:
            yield Emit(unresolved_from_proto(call))
        if not page.next_page_token:
            return
        asked.page_token = page.next_page_token


def suggest_range(
    session: SessionState, first_seq: int, last_seq: int, *, timeout_s: float | None = None
) -> Operation[SuggestedRange | None]:
    """Return the range nearest to two live entries that splits no call from its result.

    Nor does it take anything of an open turn. None if there is no such range.
    """
    entries = request(event_pb2.EntryRange, first_seq=first_seq, last_seq=last_seq)
    asked = request(pb.SuggestRangeRequest, session_id=session.session_id, entries=entries)
    answer = yield from unary(session.client.attempts(timeout_s), SUGGEST_RANGE, asked)
    session.saw(answer.next_seq)
    return suggested_from_proto(answer)
