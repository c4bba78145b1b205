"""Requests and what is said of them, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from foldlog.client.decoding import folded_from_proto
from foldlog.client.values import FoldedMessage
from foldlog.codec import header_from_proto
from foldlog.core.change import ChangeKind
from foldlog.core.header import Header, HeaderReason
from foldlog.v1 import service_pb2 as pb


@dataclass(frozen=True, slots=True)
class HeaderRecord:
    """Why a header was written, or None if none was owed; the seq of the one in force."""

    reason: HeaderReason | None
    seq: int
    next_seq: int

    @property
    def wrote(self) -> bool:
        """Whether it was written."""
        return self.reason is not None


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """A request as the log gives it: to be sent as it is.

    `next_seq` is where it is built, `encoding_sha256` the SHA-256 of the service's own encoding of
    header and messages, `count` the number of messages, those that were skipped among them.
    """

    header: Header
    messages: tuple[FoldedMessage, ...]
    encoding_sha256: bytes
    next_seq: int
    count: int
    step_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A step that began. Its request extends the one before if the provider's cache holds."""

    step_seq: int
    next_seq: int
    header_reason: HeaderReason | None
    request: BuiltRequest
    extends_previous: bool


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """The record of a request that was sent."""

    seq: int
    next_seq: int


@dataclass(frozen=True, slots=True)
class RequestMismatch:
    """A record that does not come out as it was. `reason` says why it cannot be made at all."""

    seq: int
    step_seq: int | None
    recorded_sha256: bytes
    rebuilt_sha256: bytes
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RequestVerification:
    """What making the recorded requests again found."""

    verified_count: int
    skipped_count: int
    mismatches: tuple[RequestMismatch, ...]
    next_seq: int

    @property
    def ok(self) -> bool:
        """Each request that was recorded came out as it was."""
        return not self.mismatches


@dataclass(frozen=True, slots=True)
class RequestChange:
    """How a step's request departs from the one before, and what that cost in cached prefix."""

    step_seq: int
    previous_step_seq: int | None
    is_extension: bool
    kind: ChangeKind
    message_index: int | None
    header_fields: tuple[str, ...]
    cause_seq: int | None
    previous_messages: int
    lost_messages: int
    lost_bytes: int
    lost_tokens: int


def reason_from_proto(number: int) -> HeaderReason | None:
    """Return why a header was written; None if it was not."""
    return HeaderReason(number) or None


def built_from_proto(request: pb.BuiltRequest, pieces: Sequence[pb.FoldedMessages]) -> BuiltRequest:
    """Return the request, its messages in pieces."""
    return BuiltRequest(
        header=header_from_proto(request.header),
        messages=tuple(folded_from_proto(each) for piece in pieces for each in piece.messages),
        encoding_sha256=request.encoding_sha256,
        next_seq=request.built_at_next_seq,
        count=request.count,
        step_seq=request.step_seq if request.HasField("step_seq") else None,
    )


def verification_from_proto(answer: pb.VerifyRequestsResponse) -> RequestVerification:
    """Return what was found."""
    found = tuple(
        RequestMismatch(
            each.seq,
            each.step_seq if each.HasField("step_seq") else None,
            each.recorded_sha256,
            each.rebuilt_sha256,
            each.reason,
        )
        for each in answer.mismatches
    )
    return RequestVerification(answer.verified_count, answer.skipped_count, found, answer.next_seq)


def change_from_proto(change: pb.RequestChange) -> RequestChange:
    """Return the change. A kind of a newer release is UNSPECIFIED."""
    has = change.HasField
    return RequestChange(
        step_seq=change.step_seq,
        previous_step_seq=change.previous_step_seq if has("previous_step_seq") else None,
        is_extension=change.is_extension,
        kind=_kind(change.kind),
        message_index=change.message_index if has("message_index") else None,
        header_fields=tuple(change.header_fields),
        cause_seq=change.cause_seq if has("cause_seq") else None,
        previous_messages=change.previous_messages,
        lost_messages=change.lost_messages,
        lost_bytes=change.lost_bytes,
        lost_tokens=change.lost_tokens,
    )


def _kind(number: int) -> ChangeKind:
    try:
        return ChangeKind(number)
    except ValueError:
        return ChangeKind.UNSPECIFIED
