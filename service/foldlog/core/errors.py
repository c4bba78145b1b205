"""The error tree: one class per reason, its facts as attributes.

The reasons are the names of foldlog.v1.ErrorReason; what each means and what to do stands there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self, get_type_hints


class FoldlogError(Exception):
    """The root. `facts` are the keyword arguments, which are attributes too."""

    reason: ClassVar[str] = ""
    template: ClassVar[str] = ""

    def __init__(self, message: str | None = None, **facts: object) -> None:
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)
        super().__init__(message or self.template.format_map(facts))

    @classmethod
    def from_metadata(cls, message: str, metadata: Mapping[str, str]) -> Self:
        """Build the error from the wire's strings, each fact in its declared type."""
        kinds = get_type_hints(cls)
        facts: dict[str, object] = {}
        for name, text in metadata.items():
            facts[name] = _decoded(kinds.get(name), text)
        return cls(message, **facts)

    def metadata(self) -> dict[str, str]:
        """Return the facts as the wire's strings."""
        return {name: _encoded(value) for name, value in self.facts.items()}


def _encoded(value: object) -> str:
    return "\n".join(value) if isinstance(value, tuple) else str(value)


def _decoded(kind: object, text: str) -> object:
    if kind is int:
        return int(text)
    if kind == tuple[str, ...]:
        return tuple(text.split("\n")) if text else ()
    return text


class InvalidFieldError(FoldlogError):
    """Fields are malformed. `fields` maps each field's path to what is wrong with it."""

    reason = "INVALID_FIELD"
    fields: Mapping[str, str]

    def __init__(
        self, message: str | None = None, *, fields: Mapping[str, str] | None = None
    ) -> None:
        self.fields = dict(fields or {})
        text = message or "; ".join(f"{name}: {wrong}" for name, wrong in self.fields.items())
        super().__init__(text)

    @classmethod
    def of(cls, field: str, wrong: str) -> InvalidFieldError:
        """Return the error for one field."""
        return cls(fields={field: wrong})

    def within(self, prefix: str) -> InvalidFieldError:
        """Return the same error with each field's path put under a prefix."""
        return InvalidFieldError(fields={f"{prefix}.{name}": w for name, w in self.fields.items()})


class TooLargeError(FoldlogError):
    """Something exceeds a limit."""

    reason = "TOO_LARGE"
    template = "{field}: {size} exceeds the limit of {limit}"
    field: str
    size: int
    limit: int

    def within(self, prefix: str) -> TooLargeError:
        """Return the same error with the field's path put under a prefix."""
        return TooLargeError(field=f"{prefix}.{self.field}", size=self.size, limit=self.limit)


class SeqConflictError(FoldlogError):
    """Another write came first."""

    reason = "SEQ_CONFLICT"
    template = "expected next_seq {expected_next_seq}, found {next_seq}"
    expected_next_seq: int
    next_seq: int


class SeqBehindHeadError(FoldlogError):
    """A restore names a seq below next_seq."""

    reason = "SEQ_BEHIND_HEAD"
    template = "seq {seq} is behind the head: next_seq is {next_seq}"
    seq: int
    next_seq: int


class SeqBeyondHeadError(FoldlogError):
    """A seq lies beyond the head."""

    reason = "SEQ_BEYOND_HEAD"
    template = "seq {seq} is beyond the head: next_seq is {next_seq}"
    seq: int
    next_seq: int


class StaleWriterError(FoldlogError):
    """Another worker took the session over."""

    reason = "STALE_WRITER"
    template = "writer epoch {writer_epoch} is not the current one, {current_epoch}"
    writer_epoch: int
    current_epoch: int


class WriterEpochRequiredError(FoldlogError):
    """The session has a writer epoch and the call names none."""

    reason = "WRITER_EPOCH_REQUIRED"
    template = "writer epoch {current_epoch} is in force and the call names none"
    current_epoch: int


class PreviousBatchFailedError(FoldlogError):
    """An earlier batch of the session on this stream was refused."""

    reason = "PREVIOUS_BATCH_FAILED"
    template = "batch {number} of session {session_id} was refused: resume first"
    session_id: str
    number: int


class HistoryDroppedError(FoldlogError):
    """A dropped event is needed."""

    reason = "HISTORY_DROPPED"
    template = "event {seq} was dropped: history is whole from seq {whole_from_seq}"
    seq: int
    whole_from_seq: int


class EntryNotLiveError(FoldlogError):
    """A replace names an entry that is not live."""

    reason = "ENTRY_NOT_LIVE"
    template = "no event with seq {seq} is live on the surface"
    seq: int


class EmptyRangeError(FoldlogError):
    """A replace shadows nothing."""

    reason = "EMPTY_RANGE"
    template = "no live event stands at positions {start} to {stop}"
    start: int
    stop: int


class UnbalancedRangeError(FoldlogError):
    """A replace would split a call from its result."""

    reason = "UNBALANCED_RANGE"
    template = (
        "the range would orphan results {orphaned_result_ids} and leave calls {unanswered_call_ids}"
    )
    orphaned_result_ids: tuple[str, ...]
    unanswered_call_ids: tuple[str, ...]


class OpenTurnError(FoldlogError):
    """A turn is open at the cut."""

    reason = "OPEN_TURN"
    template = "the turn that began at seq {turn_seq} is open at the cut"
    turn_seq: int


class HasForksError(FoldlogError):
    """Forks read the session's rows."""

    reason = "HAS_FORKS"
    template = "forks read this session's rows: {session_ids}"
    session_ids: tuple[str, ...]


class AttachmentNotFoundError(FoldlogError):
    """An event names an attachment that is not stored."""

    reason = "ATTACHMENT_NOT_FOUND"
    template = "no attachment {sha256} is stored"
    sha256: str


class AttachmentUnknownError(AttachmentNotFoundError):
    """No attachment of this digest is stored: it was asked for, not named by an event."""

    reason = "ATTACHMENT_UNKNOWN"


class RequestIdReusedError(FoldlogError):
    """The request id was used for another request."""

    reason = "REQUEST_ID_REUSED"
    template = "request id {request_id} was used for another request"
    request_id: str


class SessionExistsError(FoldlogError):
    """A session of this id exists."""

    reason = "SESSION_EXISTS"
    template = "session {session_id} exists"
    session_id: str


class SessionNotFoundError(FoldlogError):
    """There is no such session."""

    reason = "SESSION_NOT_FOUND"
    template = "there is no session {session_id}"
    session_id: str


class SessionDeletedError(FoldlogError):
    """The session was deleted."""

    reason = "SESSION_DELETED"
    template = "session {session_id} was deleted"
    session_id: str


class EventCorruptError(FoldlogError):
    """A stored event does not decode or match its commitment."""

    reason = "EVENT_CORRUPT"
    template = "stored event {seq} of session {session_id} is damaged: {damage}"
    session_id: str
    seq: int
    damage: str
    cursor: str  # in WatchAllEvents: where to go on behind it

    def before(self, cursor: str) -> EventCorruptError:
        """Return the same error, met in a feed that goes on at a cursor."""
        return type(self)(**self.facts, cursor=cursor)  # type: ignore[arg-type]


class EncryptionKeyMissingError(EventCorruptError):
    """What is asked for is encrypted under a master key that the service does not have.

    It is of an event, or, with `sha256`, of an attachment.
    """

    reason = "ENCRYPTION_KEY_MISSING"
    template = "stored event {seq} of session {session_id} cannot be read: {damage}"
    key_id: str
    sha256: str


class AttachmentCorruptError(FoldlogError):
    """A stored attachment does not match its digest."""

    reason = "ATTACHMENT_CORRUPT"
    template = "stored attachment {sha256} is damaged"
    sha256: str


class StoreDamagedError(FoldlogError):
    """The database is damaged where the call needs it."""

    reason = "STORE_DAMAGED"
    template = "the database is damaged: {cause}"
    cause: str


class OverloadedError(FoldlogError):
    """The server sheds load."""

    reason = "OVERLOADED"
    template = "the server is overloaded: {cause}"
    cause: str


class StoreUnavailableError(FoldlogError):
    """The store cannot be reached; the outcome of a write is unknown."""

    reason = "STORE_UNAVAILABLE"
    template = "the store cannot be reached: {cause}"
    cause: str


class RequestNotDerivableError(FoldlogError):
    """A strict check found a violation: `violation`, a core Violation."""

    reason = "REQUEST_NOT_DERIVABLE"

    def __init__(self, message: str | None = None, *, violation: object = None) -> None:
        self.violation = violation
        super().__init__(message or "the request cannot be derived from the log")


class HeaderMissingError(FoldlogError):
    """The log has no request header."""

    reason = "HEADER_MISSING"
    template = "the log of session {session_id} has no request header"
    session_id: str


class SigningKeyMissingError(FoldlogError):
    """The service has no key to sign with."""

    reason = "SIGNING_KEY_MISSING"
    template = "the service has no signing key"


class InternalError(FoldlogError):
    """A fault of the service."""

    reason = "INTERNAL"
    template = "a fault of the service; its log has {log_id}"
    log_id: str


class ShuttingDownError(FoldlogError):
    """The server shuts down."""

    reason = "SHUTTING_DOWN"
    template = "the server shuts down"


class UnauthenticatedError(FoldlogError):
    """The call has no valid credentials: none, or unknown, expired or revoked ones."""

    reason = "UNAUTHENTICATED"
    template = "the call has no valid credentials"


class PermissionDeniedError(FoldlogError):
    """The caller is known and may not do this."""

    reason = "PERMISSION_DENIED"
    template = "{action} needs {needs}"
    action: str
    needs: str


class QuotaExceededError(FoldlogError):
    """The tenant has used up a quota."""

    reason = "QUOTA_EXCEEDED"
    template = "the tenant's quota of {quota} is {limit}, and {used} are used"
    quota: str
    limit: int
    used: int


class SlowReaderError(FoldlogError):
    """A watch reads too slowly."""

    reason = "SLOW_READER"
    template = "the watch fell too far behind; go on from {cursor}"
    cursor: str


def leaves(root: type[FoldlogError] = FoldlogError) -> Iterator[type[FoldlogError]]:
    """Yield every class of the tree that stands for a reason."""
    for kind in root.__subclasses__():
        yield from leaves(kind)
        if kind.reason:
            yield kind


def by_reason() -> dict[str, type[FoldlogError]]:
    """Return the class of each reason."""
    return {kind.reason: kind for kind in leaves()}
