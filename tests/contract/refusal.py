"""What a refused call says: its code, its reason and its details."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from foldlog.v1 import check_pb2, service_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

CODES = {
    "INVALID_FIELD": grpc.StatusCode.INVALID_ARGUMENT,
    "TOO_LARGE": grpc.StatusCode.INVALID_ARGUMENT,
    "SEQ_CONFLICT": grpc.StatusCode.ABORTED,
    "SEQ_BEHIND_HEAD": grpc.StatusCode.FAILED_PRECONDITION,
    "SEQ_BEYOND_HEAD": grpc.StatusCode.OUT_OF_RANGE,
    "STALE_WRITER": grpc.StatusCode.FAILED_PRECONDITION,
    "WRITER_EPOCH_REQUIRED": grpc.StatusCode.FAILED_PRECONDITION,
    "PREVIOUS_BATCH_FAILED": grpc.StatusCode.FAILED_PRECONDITION,
    "HISTORY_DROPPED": grpc.StatusCode.FAILED_PRECONDITION,
    "ENTRY_NOT_LIVE": grpc.StatusCode.FAILED_PRECONDITION,
    "EMPTY_RANGE": grpc.StatusCode.FAILED_PRECONDITION,
    "UNBALANCED_RANGE": grpc.StatusCode.FAILED_PRECONDITION,
    "OPEN_TURN": grpc.StatusCode.FAILED_PRECONDITION,
    "HAS_FORKS": grpc.StatusCode.FAILED_PRECONDITION,
    "REQUEST_ID_REUSED": grpc.StatusCode.ALREADY_EXISTS,
    "SESSION_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
    "SESSION_NOT_FOUND": grpc.StatusCode.NOT_FOUND,
    "SESSION_DELETED": grpc.StatusCode.NOT_FOUND,
    "EVENT_CORRUPT": grpc.StatusCode.DATA_LOSS,
    "SIGNING_KEY_MISSING": grpc.StatusCode.FAILED_PRECONDITION,
    "ENCRYPTION_KEY_MISSING": grpc.StatusCode.FAILED_PRECONDITION,
    "ATTACHMENT_NOT_FOUND": grpc.StatusCode.FAILED_PRECONDITION,
    "ATTACHMENT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "ATTACHMENT_CORRUPT": grpc.StatusCode.DATA_LOSS,
    "STORE_DAMAGED": grpc.StatusCode.DATA_LOSS,
    "OVERLOADED": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "STORE_UNAVAILABLE": grpc.StatusCode.UNAVAILABLE,
    "REQUEST_NOT_DERIVABLE": grpc.StatusCode.FAILED_PRECONDITION,
    "HEADER_MISSING": grpc.StatusCode.NOT_FOUND,
    "SHUTTING_DOWN": grpc.StatusCode.UNAVAILABLE,
    "SLOW_READER": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "UNAUTHENTICATED": grpc.StatusCode.UNAUTHENTICATED,
    "PERMISSION_DENIED": grpc.StatusCode.PERMISSION_DENIED,
    "QUOTA_EXCEEDED": grpc.StatusCode.RESOURCE_EXHAUSTED,
}


@dataclass
class Refusal:
    """What a refused call said. Empty until the call was refused."""

    code: grpc.StatusCode = grpc.StatusCode.OK
    message: str = ""
    info: error_details_pb2.ErrorInfo | None = None
    fields: dict[str, str] | None = None
    violation: check_pb2.Violation | None = None
    retry: error_details_pb2.RetryInfo | None = None

    @property
    def reason(self) -> str:
        """The reason in ErrorInfo, or nothing."""
        return self.info.reason if self.info else ""

    @property
    def facts(self) -> dict[str, str]:
        """The metadata in ErrorInfo."""
        return dict(self.info.metadata) if self.info else {}

    def read(self, status: status_pb2.Status) -> None:
        """Take everything from a status."""
        self.message = status.message
        for detail in status.details:
            self._take(detail)

    def _take(self, detail: Any) -> None:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        violation, retry = check_pb2.Violation(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            self.info = info
        elif detail.Unpack(bad):
            self.fields = {each.field: each.description for each in bad.field_violations}
        elif detail.Unpack(violation):
            self.violation = violation
        elif detail.Unpack(retry):
            self.retry = retry


def refusal_of(error: grpc.RpcError) -> Refusal:
    """Return what a failed call said."""
    refusal = Refusal(code=error.code(), message=error.details() or "")
    status = rpc_status.from_call(error)
    if status is not None:
        refusal.read(status)
    return refusal


def refusal_in(error: service_pb2.ElementError) -> Refusal:
    """Return what a refused element of a stream says."""
    code = next(each for each in grpc.StatusCode if each.value[0] == error.code)
    refusal = Refusal(code=code)
    refusal.read(status_pb2.Status(message=error.message, details=error.details))
    return refusal


@contextmanager
def refused(reason: str, **facts: object) -> Iterator[Refusal]:
    """Expect a refusal with this reason, the code that belongs to it, and these facts."""
    told = Refusal()
    with pytest.raises(grpc.RpcError) as caught:
        yield told
    told.__dict__.update(refusal_of(caught.value).__dict__)
    assert (told.reason, told.code) == (reason, CODES[reason]), told
    assert told.info is not None
    assert told.info.domain == "foldlog"
    assert {name: told.facts.get(name) for name in facts} == {k: str(v) for k, v in facts.items()}
