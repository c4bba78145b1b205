"""The RPCs of recovery: plans, takeovers, unresolved calls, and ranges to replace."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.timestamp_pb2 import Timestamp

from foldlog.application.recovery import Recovered
from foldlog.application.tenant import Tenant
from foldlog.core.errors import InvalidFieldError
from foldlog.persistence.ledger import UnresolvedCall
from foldlog.server.handlers import Rpc
from foldlog.server.servicer import page_size
from foldlog.v1 import event_pb2
from foldlog.v1 import service_pb2 as pb

MAX_PAGE_CALLS = 1_000
DEFAULT_PAGE_CALLS = 50


class RecoveryServicer:
    """Recovery over an application."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    def rpcs(self) -> Mapping[str, Rpc]:
        """Return the RPCs by name."""
        return {
            "PlanRecovery": Rpc(self.plan_recovery, pb.PlanRecoveryRequest),
            "RecoverSession": Rpc(self.recover_session, pb.RecoverSessionRequest),
            "ListUnresolvedCalls": Rpc(self.list_unresolved_calls, pb.ListUnresolvedCallsRequest),
            "SuggestRange": Rpc(self.suggest_range, pb.SuggestRangeRequest),
        }

    async def plan_recovery(self, request: pb.PlanRecoveryRequest) -> pb.PlanRecoveryResponse:
        """Say what is open."""
        return await self._tenant.recovery.plan(request.session_id)

    async def recover_session(self, request: pb.RecoverSessionRequest) -> pb.RecoverSessionResponse:
        """Take a session over."""
        found = await self._tenant.recovery.recover(
            request.session_id,
            request.request_id,
            request.expected_epoch if request.HasField("expected_epoch") else None,
            request.owner,
            request.close_open_turns,
        )
        answer = _recovered(found)
        if found.header is not None:
            answer.header.CopyFrom(await self._tenant.reading.header_at(found.header))
        return answer

    async def list_unresolved_calls(
        self, request: pb.ListUnresolvedCallsRequest
    ) -> pb.ListUnresolvedCallsResponse:
        """List a page of unresolved calls."""
        calls, token = await self._tenant.ledger.unresolved(
            page_size(request.page_size, DEFAULT_PAGE_CALLS, MAX_PAGE_CALLS),
            request.page_token,
            request.session_id,
        )
        listed = [_unresolved(call) for call in calls]
        return pb.ListUnresolvedCallsResponse(calls=listed, next_page_token=token)

    async def suggest_range(self, request: pb.SuggestRangeRequest) -> pb.SuggestRangeResponse:
        """Suggest a range to replace."""
        if not request.HasField("entries"):
            raise InvalidFieldError.of("entries", "is required")
        found, next_seq = await self._tenant.ranges.suggest(
            request.session_id, request.entries.first_seq, request.entries.last_seq
        )
        if found is None:
            return pb.SuggestRangeResponse(next_seq=next_seq)
        return pb.SuggestRangeResponse(
            found=True,
            entries=event_pb2.EntryRange(first_seq=found.first_seq, last_seq=found.last_seq),
            positions=event_pb2.PositionRange(start=found.start, stop=found.stop),
            count=found.count,
            next_seq=next_seq,
        )


def _recovered(found: Recovered) -> pb.RecoverSessionResponse:
    return pb.RecoverSessionResponse(
        writer_epoch=found.writer_epoch,
        next_seq=found.next_seq,
        plan=found.plan,
        closing_seqs=found.closing_seqs,
    )


def _unresolved(call: UnresolvedCall) -> pb.UnresolvedCall:
    seconds, nanos = call.time
    return pb.UnresolvedCall(
        session_id=call.session_id,
        seq=call.seq,
        call_id=call.call_id,
        name=call.name,
        idempotency_key=call.idempotency_key,
        time=Timestamp(seconds=seconds, nanos=nanos),
    )
