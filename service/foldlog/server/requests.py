"""The RPCs of headers, steps, requests and the cache report."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from foldlog.application.decisions import Guard
from foldlog.application.explaining import Change
from foldlog.application.requests import Built
from foldlog.application.tenant import Tenant
from foldlog.application.verifying import Mismatch
from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import HeaderReason
from foldlog.internal.v1 import raw_pb2 as raw
from foldlog.server import encoding
from foldlog.server.handlers import Rpc
from foldlog.server.servicer import page_size, seq_of_token
from foldlog.v1 import service_pb2 as pb

DEFAULT_PAGE = 100
MAX_PAGE = 1_000
MESSAGES_FIELD = 2


class RequestServicer:
    """What rebuilds requests, over an application."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    def rpcs(self) -> Mapping[str, Rpc]:
        """Return the RPCs by name."""
        return {
            "RecordHeader": Rpc(self.record_header, pb.RecordHeaderRequest),
            "BeginStep": Rpc(self.begin_step, raw.RawBeginStepRequest, False, True),
            "RecordRequest": Rpc(self.record_request, pb.RecordRequestRequest),
            "BuildRequest": Rpc(self.build_request, pb.BuildRequestRequest, False, True),
            "VerifyRequests": Rpc(self.verify_requests, pb.VerifyRequestsRequest),
            "ExplainRequest": Rpc(self.explain_request, pb.ExplainRequestRequest),
        }

    async def record_header(self, request: pb.RecordHeaderRequest) -> pb.RecordHeaderResponse:
        """Append a header if one is owed."""
        if not request.HasField("header"):
            raise InvalidFieldError.of("header", "is required")
        guard = Guard(
            request.expected_next_seq if request.HasField("expected_next_seq") else None,
            request.writer_epoch if request.HasField("writer_epoch") else None,
        )
        found = await self._tenant.headers.record(
            request.session_id, request.request_id, request.header, guard, request.skip_unchanged
        )
        return pb.RecordHeaderResponse(
            wrote=found.reason is not None,
            reason=int(found.reason or HeaderReason.UNSPECIFIED),  # type: ignore[arg-type]
            seq=found.seq,
            next_seq=found.next_seq,
        )

    async def begin_step(self, request: raw.RawBeginStepRequest) -> AsyncIterator[bytes]:
        """Begin a step."""
        begun = await self._tenant.steps.begin(request)
        step = pb.BegunStep(
            step_seq=begun.step_seq,
            next_seq=begun.built.state.next_seq,
            wrote_header=int(begun.reason or HeaderReason.UNSPECIFIED),  # type: ignore[arg-type]
            request=_built(begun.built),
            extends_previous=begun.extends_previous,
        )
        yield pb.BeginStepResponse(step=step).SerializeToString()
        async for piece in begun.built.messages(request.skip):
            yield encoding.nested(MESSAGES_FIELD, encoding.repeated(1, piece))

    async def record_request(self, request: pb.RecordRequestRequest) -> pb.RecordRequestResponse:
        """Keep what identifies a sent request."""
        if not request.HasField("sent"):
            raise InvalidFieldError.of("sent", "is required")
        recorded = await self._tenant.records.record(
            request.session_id,
            request.request_id,
            request.sent,
            request.writer_epoch if request.HasField("writer_epoch") else None,
        )
        return pb.RecordRequestResponse(seq=recorded.seq, next_seq=recorded.next_seq)

    async def build_request(self, request: pb.BuildRequestRequest) -> AsyncIterator[bytes]:
        """Give a request again."""
        at = request.WhichOneof("at")
        built = await self._tenant.requests.build(
            request.session_id,
            request.at_seq if at == "at_seq" else None,
            request.step_seq if at == "step_seq" else None,
            request.independent,
        )
        yield pb.BuildRequestResponse(request=_built(built)).SerializeToString()
        async for piece in built.messages():
            yield encoding.nested(MESSAGES_FIELD, encoding.repeated(1, piece))

    async def verify_requests(self, request: pb.VerifyRequestsRequest) -> pb.VerifyRequestsResponse:
        """Make recorded requests again and compare."""
        found = await self._tenant.verifying.verify(request.session_id, request.from_seq)
        return pb.VerifyRequestsResponse(
            verified_count=found.verified_count,
            skipped_count=found.skipped_count,
            mismatches=[_mismatch(each) for each in found.mismatches],
            next_seq=found.next_seq,
        )

    async def explain_request(self, request: pb.ExplainRequestRequest) -> pb.ExplainRequestResponse:
        """Say how requests follow one another."""
        explaining = self._tenant.explaining
        if request.HasField("step_seq"):
            report = await explaining.step(request.session_id, request.step_seq)
        else:
            size = page_size(request.page_size, DEFAULT_PAGE, MAX_PAGE)
            from_step = seq_of_token(request.page_token) if request.page_token else 0
            report = await explaining.breaks(request.session_id, from_step, size)
        return pb.ExplainRequestResponse(
            changes=[_change(each) for each in report.changes],
            next_page_token="" if report.next_step is None else str(report.next_step),
            step_count=report.step_count,
            next_seq=report.next_seq,
        )


def _built(built: Built) -> pb.BuiltRequest:
    state = built.state
    return pb.BuiltRequest(
        header=state.header,
        count=len(state.entries),
        digest=encoding.digest(state.digest),
        encoding_sha256=built.encoding_sha256,
        built_at_next_seq=state.next_seq,
        step_seq=built.step_seq,
    )


def _mismatch(found: Mismatch) -> pb.RequestMismatch:
    return pb.RequestMismatch(
        seq=found.seq,
        step_seq=found.step_seq,
        recorded_sha256=found.recorded_sha256,
        rebuilt_sha256=found.rebuilt_sha256,
        reason=found.reason,
    )


def _change(found: Change) -> pb.RequestChange:
    return pb.RequestChange(
        step_seq=found.step_seq,
        previous_step_seq=found.previous_step_seq,
        is_extension=found.is_extension,
        kind=int(found.kind),  # type: ignore[arg-type]
        message_index=found.message_index,
        header_fields=found.header_fields,
        cause_seq=found.cause_seq,
        previous_messages=found.previous_messages,
        lost_messages=found.lost_messages,
        lost_bytes=found.lost_bytes,
        lost_tokens=found.lost_tokens,
    )
