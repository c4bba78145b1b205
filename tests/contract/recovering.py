"""The calls of recovery over the raw stub, in short forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldlog.v1 import event_pb2, service_pb2

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.said import bookkeeping

DISPATCHED = event_pb2.TOOL_CALL_PHASE_DISPATCHED
FINISHED = event_pb2.TOOL_CALL_PHASE_FINISHED
FAILED = event_pb2.TOOL_CALL_PHASE_FAILED


def logs_call(
    call_id: str, phase: event_pb2.ToolCallPhase.ValueType = DISPATCHED, **fields: Any
) -> event_pb2.NewEvent:
    """Return the event of a tool call's progress."""
    return bookkeeping(tool_call=event_pb2.ToolCallState(id=call_id, phase=phase, **fields))


def step_start(number: int | None = None) -> event_pb2.NewEvent:
    """Return the start of a step."""
    return bookkeeping(step_start=event_pb2.StepStart(number=number))


def step_end() -> event_pb2.NewEvent:
    """Return the end of a step."""
    return bookkeeping(step_end=event_pb2.StepEnd())


def plan(log: Calls) -> Any:
    """Return what is open."""
    request = service_pb2.PlanRecoveryRequest(session_id=log.session_id)
    return log.stub.PlanRecovery(request, timeout=DEADLINE_S)


def risks(log: Calls) -> list[tuple[str, str]]:
    """Return the calls that are owed a result, each with its risk's name."""
    return [
        (each.call_id, service_pb2.CallRisk.Name(each.risk).removeprefix("CALL_RISK_"))
        for each in plan(log).owed_calls
    ]


def recover(log: Calls, *, close_open_turns: bool = True, **fields: Any) -> Any:
    """Take a session over and return the answer."""
    request = service_pb2.RecoverSessionRequest(
        session_id=log.session_id, close_open_turns=close_open_turns, **fields
    )
    return log.stub.RecoverSession(request, timeout=DEADLINE_S)


def unresolved_pages(stub: Any, session_id: str = "", page_size: int = 0) -> Iterator[Any]:
    """Yield pages of unresolved calls to the end."""
    request = service_pb2.ListUnresolvedCallsRequest(session_id=session_id, page_size=page_size)
    while True:
        page = stub.ListUnresolvedCalls(request, timeout=DEADLINE_S)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


def unresolved(log: Calls) -> list[tuple[int, str]]:
    """Return (seq, id) of the session's unresolved calls, the oldest first."""
    pages = unresolved_pages(log.stub, log.session_id)
    return [(call.seq, call.call_id) for page in pages for call in page.calls]


def suggest(log: Calls, first_seq: int, last_seq: int) -> Any:
    """Ask for a range and return the answer."""
    entries = event_pb2.EntryRange(first_seq=first_seq, last_seq=last_seq)
    request = service_pb2.SuggestRangeRequest(session_id=log.session_id, entries=entries)
    return log.stub.SuggestRange(request, timeout=DEADLINE_S)
