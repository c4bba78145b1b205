"""Errors on the wire: the one table of codes, and the details of google.rpc."""

from __future__ import annotations

from typing import Any, NoReturn
from uuid import uuid4

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message as ProtoMessage
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from foldlog import observability
from foldlog._grpc import aio, grpc
from foldlog.codec import violation_to_proto
from foldlog.core import errors
from foldlog.core.errors import FoldlogError, InvalidFieldError, RequestNotDerivableError
from foldlog.core.invariant import Violation
from foldlog.v1 import check_pb2

DOMAIN = "foldlog"
DETAILS_KEY = "grpc-status-details-bin"

# gRPC refuses trailers of 8 KiB and more, and with them the reason; in base64 these stay below.
MESSAGE_BYTES = 400
FACT_BYTES = 1_000
VIOLATION_BYTES = 2_400

_Code = grpc.StatusCode
CODES: dict[type[FoldlogError], grpc.StatusCode] = {
    errors.InvalidFieldError: _Code.INVALID_ARGUMENT,
    errors.TooLargeError: _Code.INVALID_ARGUMENT,
    errors.SeqConflictError: _Code.ABORTED,
    errors.SeqBehindHeadError: _Code.FAILED_PRECONDITION,
    errors.SeqBeyondHeadError: _Code.OUT_OF_RANGE,
    errors.StaleWriterError: _Code.FAILED_PRECONDITION,
    errors.WriterEpochRequiredError: _Code.FAILED_PRECONDITION,
    errors.PreviousBatchFailedError: _Code.FAILED_PRECONDITION,
    errors.HistoryDroppedError: _Code.FAILED_PRECONDITION,
    errors.EntryNotLiveError: _Code.FAILED_PRECONDITION,
    errors.EmptyRangeError: _Code.FAILED_PRECONDITION,
    errors.UnbalancedRangeError: _Code.FAILED_PRECONDITION,
    errors.OpenTurnError: _Code.FAILED_PRECONDITION,
    errors.HasForksError: _Code.FAILED_PRECONDITION,
    errors.AttachmentNotFoundError: _Code.FAILED_PRECONDITION,
    errors.AttachmentUnknownError: _Code.NOT_FOUND,
    errors.RequestIdReusedError: _Code.ALREADY_EXISTS,
    errors.SessionExistsError: _Code.ALREADY_EXISTS,
    errors.SessionNotFoundError: _Code.NOT_FOUND,
    errors.SessionDeletedError: _Code.NOT_FOUND,
    errors.EventCorruptError: _Code.DATA_LOSS,
    errors.EncryptionKeyMissingError: _Code.FAILED_PRECONDITION,
    errors.AttachmentCorruptError: _Code.DATA_LOSS,
    errors.StoreDamagedError: _Code.DATA_LOSS,
    errors.OverloadedError: _Code.RESOURCE_EXHAUSTED,
    errors.StoreUnavailableError: _Code.UNAVAILABLE,
    errors.RequestNotDerivableError: _Code.FAILED_PRECONDITION,
    errors.HeaderMissingError: _Code.NOT_FOUND,
    errors.SigningKeyMissingError: _Code.FAILED_PRECONDITION,
    errors.InternalError: _Code.INTERNAL,
    errors.ShuttingDownError: _Code.UNAVAILABLE,
    errors.SlowReaderError: _Code.RESOURCE_EXHAUSTED,
    errors.UnauthenticatedError: _Code.UNAUTHENTICATED,
    errors.PermissionDeniedError: _Code.PERMISSION_DENIED,
    errors.QuotaExceededError: _Code.RESOURCE_EXHAUSTED,
}
CODE_OF_NUMBER: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
RETRY_AFTER_S = {
    errors.OverloadedError: 1,
    errors.StoreUnavailableError: 1,
    errors.ShuttingDownError: 1,
    errors.SlowReaderError: 1,
    errors.QuotaExceededError: 60,
}
CALLS_AGAIN_S = 1  # where the quota that is used up is one of calls


def as_ours(error: BaseException) -> FoldlogError:
    """Return an error as a caller may see it; a fault of ours is logged under an id."""
    if isinstance(error, FoldlogError):
        return error
    log_id = uuid4().hex
    observability.log("call.failed", level="error", log_id=log_id, error=error)
    return errors.InternalError(log_id=log_id)


def status_of(error: FoldlogError) -> Status:
    """Return an error as google.rpc.Status with its details."""
    code: int = CODES[type(error)].value[0]
    status = Status(code=code, message=cut(str(error), MESSAGE_BYTES))
    for detail in _details(error):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


async def abort(context: aio.ServicerContext[Any, Any], error: FoldlogError) -> NoReturn:
    """End a call with an error."""
    status = status_of(error)
    trailer = ((DETAILS_KEY, status.SerializeToString()),)
    await context.abort(CODE_OF_NUMBER[status.code], status.message, trailer)


def _details(error: FoldlogError) -> list[ProtoMessage]:
    details: list[ProtoMessage] = [
        ErrorInfo(
            reason=error.reason,
            domain=DOMAIN,
            metadata={name: cut(fact, FACT_BYTES) for name, fact in error.metadata().items()},
        )
    ]
    if isinstance(error, InvalidFieldError):
        details.append(_bad_request(error))
    if isinstance(error, RequestNotDerivableError) and isinstance(error.violation, Violation):
        details.append(bounded(violation_to_proto(error.violation)))
    if type(error) in RETRY_AFTER_S:
        retry = RetryInfo()
        retry.retry_delay.seconds = _retry_after_s(error)
        details.append(retry)
    return details


def _retry_after_s(error: FoldlogError) -> int:
    if isinstance(error, errors.QuotaExceededError) and error.quota == "calls_per_s":
        return CALLS_AGAIN_S
    return RETRY_AFTER_S[type(error)]


def _bad_request(error: InvalidFieldError) -> BadRequest:
    return BadRequest(
        field_violations=[
            BadRequest.FieldViolation(
                field=cut(field, MESSAGE_BYTES), description=cut(wrong, MESSAGE_BYTES)
            )
            for field, wrong in list(error.fields.items())[:4]
        ]
    )


def cut(text: str, max_bytes: int) -> str:
    """Return as much of the beginning of a text as fits; of lines, such as ids, whole ones."""
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    kept = encoded[:max_bytes].decode(errors="ignore")
    return kept.rpartition("\n")[0] or kept


def bounded(violation: check_pb2.Violation) -> check_pb2.Violation:
    """Return a violation that fits into a status: with shorter, then with fewer sketches."""
    if violation.HasField("tool_call_id"):
        violation.tool_call_id = cut(violation.tool_call_id, MESSAGE_BYTES)
    for max_bytes in (80, 20, 4):
        if violation.ByteSize() <= VIOLATION_BYTES:
            return violation
        for sketch in (*violation.extra, *violation.missing):
            _shorten(sketch, max_bytes)
    del violation.extra[1:], violation.missing[1:]
    return violation


def _shorten(sketch: check_pb2.Sketch, max_bytes: int) -> None:
    if sketch.HasField("preview"):
        sketch.preview = cut(sketch.preview, max_bytes)
    if sketch.HasField("tool_call_id"):
        sketch.tool_call_id = cut(sketch.tool_call_id, max_bytes)
    if sketch.HasField("name"):
        sketch.name = cut(sketch.name, max_bytes)
