"""Every error a call can raise: the service's reasons, and what happens on the way to it."""

from __future__ import annotations

from foldlog.core.errors import (
    AttachmentCorruptError,
    AttachmentNotFoundError,
    AttachmentUnknownError,
    EmptyRangeError,
    EntryNotLiveError,
    EventCorruptError,
    FoldlogError,
    HasForksError,
    HeaderMissingError,
    HistoryDroppedError,
    InternalError,
    InvalidFieldError,
    OpenTurnError,
    OverloadedError,
    PermissionDeniedError,
    PreviousBatchFailedError,
    QuotaExceededError,
    RequestIdReusedError,
    RequestNotDerivableError,
    SeqBehindHeadError,
    SeqBeyondHeadError,
    SeqConflictError,
    SessionDeletedError,
    SessionExistsError,
    SessionNotFoundError,
    ShuttingDownError,
    SlowReaderError,
    StaleWriterError,
    StoreDamagedError,
    StoreUnavailableError,
    TooLargeError,
    UnauthenticatedError,
    UnbalancedRangeError,
    WriterEpochRequiredError,
)


class TransportError(FoldlogError):
    """gRPC answered, not the service. `status` is the name of gRPC's status code."""

    template = "{status}: {details}"
    status: str
    details: str


class ConnectionLostError(TransportError):
    """The server cannot be reached, or went away; the outcome of a write is unknown.

    The same call under the same request_id finds it out.
    """


class DeadlineExceededError(TransportError):
    """The call took longer than its timeout; the outcome of a write is unknown."""


class UnsupportedCallError(TransportError):
    """The server does not know the call: it is older than this client, or is something else."""


class UnknownReasonError(FoldlogError):
    """The service gave a reason that this release does not know."""

    template = "{reason_name}: {details}"
    reason_name: str
    details: str
    reason_metadata: dict[str, str]


class ClientClosedError(FoldlogError):
    """The client, or the stream, was closed."""

    template = "the client is closed"


__all__ = [
    "AttachmentCorruptError",
    "AttachmentNotFoundError",
    "AttachmentUnknownError",
    "ClientClosedError",
    "ConnectionLostError",
    "DeadlineExceededError",
    "EmptyRangeError",
    "EntryNotLiveError",
    "EventCorruptError",
    "FoldlogError",
    "HasForksError",
    "HeaderMissingError",
    "HistoryDroppedError",
    "InternalError",
    "InvalidFieldError",
    "OpenTurnError",
    "OverloadedError",
    "PermissionDeniedError",
    "PreviousBatchFailedError",
    "QuotaExceededError",
    "RequestIdReusedError",
    "RequestNotDerivableError",
    "SeqBehindHeadError",
    "SeqBeyondHeadError",
    "SeqConflictError",
    "SessionDeletedError",
    "SessionExistsError",
    "SessionNotFoundError",
    "ShuttingDownError",
    "SlowReaderError",
    "StaleWriterError",
    "StoreDamagedError",
    "StoreUnavailableError",
    "TooLargeError",
    "TransportError",
    "UnauthenticatedError",
    "UnbalancedRangeError",
    "UnknownReasonError",
    "UnsupportedCallError",
    "WriterEpochRequiredError",
]
