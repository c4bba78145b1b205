"""From gRPC's statuses to our errors: by reason where the service gave one, else by code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from foldlog._grpc import grpc
from foldlog.client.errors import (
    ConnectionLostError,
    DeadlineExceededError,
    TransportError,
    UnknownReasonError,
    UnsupportedCallError,
)
from foldlog.client.steps import Failure
from foldlog.codec import violation_from_proto
from foldlog.core.errors import (
    FoldlogError,
    InvalidFieldError,
    OverloadedError,
    QuotaExceededError,
    RequestNotDerivableError,
    ShuttingDownError,
    SlowReaderError,
    StoreUnavailableError,
    by_reason,
)
from foldlog.v1 import check_pb2, service_pb2

DOMAIN: Final = "foldlog"
DETAILS_KEY: Final = "grpc-status-details-bin"
CLASS_OF_REASON: Final = by_reason()
CODE_OF_NUMBER: Final = {code.value[0]: code for code in grpc.StatusCode}
CLASS_OF_CODE: Final[dict[grpc.StatusCode, type[TransportError]]] = {
    grpc.StatusCode.UNAVAILABLE: ConnectionLostError,
    # A call that this side did not cancel was cancelled by a server that goes away.
    grpc.StatusCode.CANCELLED: ConnectionLostError,
    # The service always gives a reason for its own faults. Without one it is grpc.aio, which says
    # this of a write to a connection that was lost just before.
    grpc.StatusCode.INTERNAL: ConnectionLostError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedCallError,
}
TRANSIENT: Final = (
    ConnectionLostError,
    OverloadedError,
    ShuttingDownError,
    SlowReaderError,
    StoreUnavailableError,
)


def failure_of_call(error: grpc.RpcError) -> Failure:
    """Return the failure of a call that gRPC raised for."""
    call = cast(grpc.Call, error)
    return _failure(call.code(), call.details() or "", _details(call))


def failure_of_element(error: service_pb2.ElementError) -> Failure:
    """Return the failure of one element of a stream."""
    code = CODE_OF_NUMBER.get(error.code, grpc.StatusCode.UNKNOWN)
    return _failure(code, error.message, error.details)


def _details(call: grpc.Call) -> Iterable[AnyMessage]:
    for key, value in call.trailing_metadata() or ():
        if key == DETAILS_KEY:
            return _decoded(value)
    return ()


def _decoded(value: str | bytes) -> Iterable[AnyMessage]:
    encoded = value if isinstance(value, bytes) else value.encode()
    try:
        return tuple(status_pb2.Status.FromString(encoded).details)
    except DecodeError:
        return ()


def _failure(code: grpc.StatusCode, message: str, details: Iterable[AnyMessage]) -> Failure:
    packed = {each.type_url.rpartition("/")[2]: each for each in details}
    error = _error_of_reason(message, packed) or _error_of_code(code, message)
    return Failure(error, _is_transient(error), _delay_s(packed))


def _is_transient(error: FoldlogError) -> bool:
    """Tell whether the same call may well succeed in a moment: room for more bytes comes later."""
    if isinstance(error, QuotaExceededError):
        return error.quota == "calls_per_s"
    return isinstance(error, TRANSIENT)


def _error_of_code(code: grpc.StatusCode, message: str) -> FoldlogError:
    return CLASS_OF_CODE.get(code, TransportError)(status=code.name, details=message)


def _error_of_reason(message: str, packed: dict[str, AnyMessage]) -> FoldlogError | None:
    info = error_details_pb2.ErrorInfo()
    if not _unpack(packed, info) or info.domain != DOMAIN:
        return None
    kind = CLASS_OF_REASON.get(info.reason)
    if kind is None:
        facts = dict(info.metadata)
        return UnknownReasonError(reason_name=info.reason, details=message, reason_metadata=facts)
    if kind is InvalidFieldError:
        return _invalid_field(message, packed)
    if kind is RequestNotDerivableError:
        return _not_derivable(message, packed)
    return kind.from_metadata(message, info.metadata)


def _invalid_field(message: str, packed: dict[str, AnyMessage]) -> InvalidFieldError:
    bad = error_details_pb2.BadRequest()
    _unpack(packed, bad)
    return InvalidFieldError(message, fields={v.field: v.description for v in bad.field_violations})


def _not_derivable(message: str, packed: dict[str, AnyMessage]) -> RequestNotDerivableError:
    violation = check_pb2.Violation()
    found = _unpack(packed, violation)
    return RequestNotDerivableError(
        message, violation=violation_from_proto(violation) if found else None
    )


def _delay_s(packed: dict[str, AnyMessage]) -> float:
    retry = error_details_pb2.RetryInfo()
    _unpack(packed, retry)
    return float(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9)


def _unpack(
    packed: dict[str, AnyMessage],
    into: error_details_pb2.ErrorInfo
    | error_details_pb2.BadRequest
    | error_details_pb2.RetryInfo
    | check_pb2.Violation,
) -> bool:
    """Fill the message from the detail of its type; answer whether there is one that decodes."""
    detail = packed.get(into.DESCRIPTOR.full_name)
    try:
        return detail is not None and detail.Unpack(into)
    except DecodeError:
        return False
