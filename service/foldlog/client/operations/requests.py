"""Operations on requests: headers, steps, records, and how one request follows another."""

from __future__ import annotations

from hashlib import sha256

from foldlog.client.encoding import checked_header_to_proto, event_to_proto, request
from foldlog.client.methods import (
    BEGIN_STEP,
    BUILD_REQUEST,
    EXPLAIN_REQUEST,
    RECORD_HEADER,
    RECORD_REQUEST,
    VERIFY_REQUESTS,
)
from foldlog.client.new_events import Appendable
from foldlog.client.operations.checking import remember
from foldlog.client.operations.reading import whole
from foldlog.client.requests import (
    BuiltRequest,
    HeaderRecord,
    RequestChange,
    RequestRecord,
    RequestVerification,
    Step,
    built_from_proto,
    change_from_proto,
    reason_from_proto,
    verification_from_proto,
)
from foldlog.client.retries import unary
from foldlog.client.state import SessionState, new_request_id
from foldlog.client.steps import Emission, Emit, Operation
from foldlog.core.header import Header
from foldlog.v1 import event_pb2
from foldlog.v1 import service_pb2 as pb


def record_header(
    session: SessionState,
    header: Header,
    *,
    skip_unchanged: bool = False,
    expected_next_seq: int | None = None,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[HeaderRecord]:
    """Append a header if one is owed: the first of the log, of a writer epoch, or a change.

    `skip_unchanged` leaves out the one at the start of a writer epoch that changes nothing.
    """
    asked = request(
        pb.RecordHeaderRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        header=checked_header_to_proto(header),
        skip_unchanged=skip_unchanged,
        expected_next_seq=expected_next_seq,
        writer_epoch=session.writer_epoch,
    )
    answer = yield from unary(session.client.attempts(timeout_s), RECORD_HEADER, asked)
    session.saw(answer.next_seq)
    return HeaderRecord(reason_from_proto(answer.reason), answer.seq, answer.next_seq)


def begin_step(
    session: SessionState,
    *events: Appendable,
    header: Header | None = None,
    number: int | None = None,
    reason: str | None = None,
    skip_unchanged: bool = False,
    expected_next_seq: int | None = None,
    skip: int = 0,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Step]:
    """Append a step_start, the events that enter with it and a header if owed, all or none.

    Returns the exact request to send. `skip` leaves out of it that many first messages, which the
    caller has. The next check knows the request to be the log's. Raises HeaderMissingError where
    no header is given and the log has none.
    """
    asked = request(
        pb.BeginStepRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        number=number,
        reason=reason,
        events=[event_to_proto(event, f"events[{i}]") for i, event in enumerate(events)],
        header=checked_header_to_proto(header),
        skip_unchanged=skip_unchanged,
        expected_next_seq=expected_next_seq,
        writer_epoch=session.writer_epoch,
        skip=skip,
    )
    pieces = yield from whole(session.client.attempts(timeout_s), BEGIN_STEP, asked)
    begun = pieces[0].step
    built = built_from_proto(begun.request, [piece.messages for piece in pieces[1:]])
    session.saw(begun.next_seq)
    if not skip:
        remember(session, [each.message for each in built.messages], begun.request.digest)
    return Step(
        begun.step_seq,
        begun.next_seq,
        reason_from_proto(begun.wrote_header),
        built,
        begun.extends_previous,
    )


def build_request(
    session: SessionState,
    at_seq: int | None = None,
    *,
    step_seq: int | None = None,
    independent: bool = False,
    timeout_s: float | None = None,
) -> Operation[BuiltRequest]:
    """Build the request now, right after a seq, or as it was for the step that began at a seq.

    `independent` makes it from the stored rows, outside of every cache. Raises HeaderMissingError
    where the log has no header.
    """
    asked = request(
        pb.BuildRequestRequest,
        session_id=session.session_id,
        at_seq=at_seq,
        step_seq=step_seq,
        independent=independent,
    )
    pieces = yield from whole(session.client.attempts(timeout_s), BUILD_REQUEST, asked)
    return built_from_proto(pieces[0].request, [piece.messages for piece in pieces[1:]])


def record_request(
    session: SessionState,
    built: BuiltRequest,
    *,
    body: bytes | None = None,
    converter: str = "",
    converter_version: str = "",
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[RequestRecord]:
    """Record that a request was sent, so that `verify_requests` can make it again and compare.

    `body` is the provider's body as it was sent; its SHA-256 is kept, beside the name and the
    version of what made it.
    """
    sent = request(
        event_pb2.SentRequest,
        built_at_next_seq=built.next_seq,
        step_seq=built.step_seq,
        encoding_sha256=built.encoding_sha256,
        body_sha256=None if body is None else sha256(body).digest(),
        converter=converter,
        converter_version=converter_version,
    )
    return (yield from _record(session, sent, request_id, timeout_s))


def record_one_shot(
    session: SessionState,
    purpose: str,
    *,
    provider: str = "",
    model: str = "",
    parameters_json: str = "",
    first_seq: int | None = None,
    last_seq: int | None = None,
    body: bytes | None = None,
    converter: str = "",
    converter_version: str = "",
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[RequestRecord]:
    """Record a request that is no step of the conversation, such as a summary of a range."""
    one_shot = request(
        event_pb2.OneShot,
        purpose=purpose,
        provider=provider,
        model=model,
        parameters_json=parameters_json,
        first_seq=first_seq,
        last_seq=last_seq,
    )
    sent = request(
        event_pb2.SentRequest,
        built_at_next_seq=0 if last_seq is None else last_seq + 1,
        body_sha256=None if body is None else sha256(body).digest(),
        converter=converter,
        converter_version=converter_version,
        one_shot=one_shot,
    )
    return (yield from _record(session, sent, request_id, timeout_s))


def _record(
    session: SessionState,
    sent: event_pb2.SentRequest,
    request_id: str | None,
    timeout_s: float | None,
) -> Operation[RequestRecord]:
    asked = request(
        pb.RecordRequestRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        sent=sent,
        writer_epoch=session.writer_epoch,
    )
    answer = yield from unary(session.client.attempts(timeout_s), RECORD_REQUEST, asked)
    session.saw(answer.next_seq)
    return RequestRecord(answer.seq, answer.next_seq)


def verify_requests(
    session: SessionState, from_seq: int = 0, *, timeout_s: float | None = None
) -> Operation[RequestVerification]:
    """Have every request recorded from a seq on made again from the stored rows, and compared."""
    asked = request(pb.VerifyRequestsRequest, session_id=session.session_id, from_seq=from_seq)
    answer = yield from unary(session.client.attempts(timeout_s), VERIFY_REQUESTS, asked)
    session.saw(answer.next_seq)
    return verification_from_proto(answer)


def explain(
    session: SessionState, step_seq: int, *, timeout_s: float | None = None
) -> Operation[RequestChange]:
    """Say how the request of a step departs from the one before, and what that cost."""
    asked = request(pb.ExplainRequestRequest, session_id=session.session_id, step_seq=step_seq)
    answer = yield from unary(session.client.attempts(timeout_s), EXPLAIN_REQUEST, asked)
    return change_from_proto(answer.changes[0])


def cache_breaks(
    session: SessionState, *, page_size: int = 0, timeout_s: float | None = None
) -> Emission[RequestChange]:
    """Iterate over the steps whose requests did not extend the one before, in log order.

    The timeout is that of each page.
    """
    asked = request(pb.ExplainRequestRequest, session_id=session.session_id, page_size=page_size)
    while True:
        page = yield from unary(session.client.attempts(timeout_s), EXPLAIN_REQUEST, asked)
        for change in page.changes:
            yield Emit(change_from_proto(change))
        if not page.next_page_token:
            return
        asked.page_token = page.next_page_token
