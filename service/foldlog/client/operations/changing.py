"""Operations that change a session otherwise than by appending to its head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeVar

from foldlog.client.batches import split
from foldlog.client.decoding import cut_from_proto, info_from_proto
from foldlog.client.encoding import request, restored_to_proto
from foldlog.client.fitting import valid_session_id
from foldlog.client.methods import (
    CLOSE_WRITER,
    DELETE_SESSION,
    ERASE_SESSION,
    FORK_SESSION,
    OPEN_WRITER,
    RESTORE_EVENTS,
    REWIND_SESSION,
    SNAPSHOT_SESSION,
    UPDATE_SESSION,
)
from foldlog.client.new_events import Placed
from foldlog.client.retries import unary, upload
from foldlog.client.state import SendLimits, SessionState, new_request_id
from foldlog.client.steps import Operation
from foldlog.client.stored import Event
from foldlog.client.values import Erased, HistoryCut, Restored, Rewound, SessionInfo
from foldlog.internal.v1 import raw_pb2
from foldlog.v1 import service_pb2 as pb

S = TypeVar("S", bound=SessionState)
RESTORE_LIMITS: Final = SendLimits(batch_events=500, batch_bytes=1024 * 1024)


def fork(
    session: S,
    at_seq: int | None = None,
    session_id: str | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    metadata_json: str = "",
    require_closed_turn: bool = False,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[S]:
    """Make a session whose log is this one's up to at_seq, and return its object.

    at_seq None is the head, -1 is none of it. The object's `cut` says what was open there. Without
    an id the service makes one. One stored row, whatever the length.
    """
    if session_id is not None:
        valid_session_id(session_id)
    asked = request(
        pb.ForkSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        child_session_id=session_id,
        at_seq=at_seq,
        labels=labels,
        metadata_json=metadata_json,
        require_closed_turn=require_closed_turn,
    )
    answer = yield from unary(session.client.attempts(timeout_s), FORK_SESSION, asked)
    child = session.sibling(answer.session.session_id, answer.next_seq)
    child.cut = cut_from_proto(answer.cut)
    return child


def rewind(
    session: SessionState,
    to_seq: int,
    *,
    expected_next_seq: int | None = None,
    require_closed_turn: bool = False,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Rewound]:
    """Take the active log back to what it was right after to_seq; -1 means none of it."""
    asked = request(
        pb.RewindSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        to_seq=to_seq,
        expected_next_seq=expected_next_seq,
        writer_epoch=session.writer_epoch,
        require_closed_turn=require_closed_turn,
    )
    answer = yield from unary(session.client.attempts(timeout_s), REWIND_SESSION, asked)
    session.saw(answer.next_seq)
    return Rewound(answer.seq, answer.next_seq, cut_from_proto(answer.cut))


def snapshot(
    session: SessionState, *, request_id: str | None = None, timeout_s: float | None = None
) -> Operation[HistoryCut]:
    """Drop the bodies of surface events that are shadowed or undone. They do not come back."""
    asked = request(
        pb.SnapshotSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
    )
    answer = yield from unary(session.client.attempts(timeout_s), SNAPSHOT_SESSION, asked)
    session.saw(answer.next_seq)
    return HistoryCut(answer.dropped_count, answer.whole_from_seq, answer.next_seq)


def update(
    session: SessionState,
    *,
    set_labels: Mapping[str, str] | None = None,
    remove_labels: Iterable[str] = (),
    metadata_json: str | None = None,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[SessionInfo]:
    """Change labels and metadata. Metadata None stays as it is; an empty text removes it."""
    asked = request(
        pb.UpdateSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        set_labels=set_labels,
        remove_labels=tuple(remove_labels),
        metadata_json=metadata_json,
    )
    answer = yield from unary(session.client.attempts(timeout_s), UPDATE_SESSION, asked)
    session.saw(answer.next_seq)
    return info_from_proto(answer.session)


def delete(
    session: SessionState, *, request_id: str | None = None, timeout_s: float | None = None
) -> Operation[None]:
    """Hide the session for ever. Its forks keep what they read. Twice is no error."""
    asked = request(
        pb.DeleteSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
    )
    yield from unary(session.client.attempts(timeout_s), DELETE_SESSION, asked)


def erase(
    session: SessionState,
    *,
    include_forks: bool = False,
    reason: str = "",
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Erased]:
    """Destroy what was said in the session; its chain can still be verified. Twice is no error.

    Raises HasForksError if forks read it, unless they are included. The reason is kept, in clear.
    """
    asked = request(
        pb.EraseSessionRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        include_forks=include_forks,
        reason=reason,
    )
    found = yield from unary(session.client.attempts(timeout_s), ERASE_SESSION, asked)
    return Erased(
        found.next_seq,
        tuple(found.erased_session_ids),
        found.erased_attachment_count,
        found.pending_attachment_count,
    )


def open_writer(
    session: SessionState,
    owner: str = "",
    expected_epoch: int | None = None,
    *,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[int]:
    """Start a writer epoch and return it; this object sends it with each write from now on.

    Other writers are refused with StaleWriterError. An expected_epoch of 0 means that none is in
    force; None takes over whatever is.
    """
    asked = request(
        pb.OpenWriterRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        expected_epoch=expected_epoch,
        owner=owner,
    )
    answer = yield from unary(session.client.attempts(timeout_s), OPEN_WRITER, asked)
    session.writer_epoch = answer.writer_epoch
    session.saw(answer.next_seq)
    return answer.writer_epoch


def close_writer(
    session: SessionState, *, request_id: str | None = None, timeout_s: float | None = None
) -> Operation[None]:
    """End the writer epoch that this object opened: writes need none again."""
    asked = request(
        pb.CloseWriterRequest,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        writer_epoch=session.writer_epoch,
    )
    answer = yield from unary(session.client.attempts(timeout_s), CLOSE_WRITER, asked)
    session.writer_epoch = None
    session.saw(answer.next_seq)


def restore(
    session: SessionState,
    events: Iterable[Event | Placed],
    *,
    expected_next_seq: int | None = None,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Restored]:
    """Put events under their original seqs, ascending, gaps allowed, all of them or none.

    Events are those that `events()` or a watch gave, or placed(event, seq). They are sent as they
    are iterated over. A lost connection is tried again unless they come from a one-time iterator.
    """
    header = request(
        pb.RestoreHeader,
        session_id=session.session_id,
        request_id=new_request_id(request_id),
        expected_next_seq=expected_next_seq,
        writer_epoch=session.writer_epoch,
    )

    def requests() -> Iterator[raw_pb2.RawRestoreEventsRequest]:
        encoded = (restored_to_proto(event, f"events[{i}]") for i, event in enumerate(events))
        first = raw_pb2.RawRestoreEventsRequest(header=header)
        yield from chain([first], map(_restore_batch, split(encoded, RESTORE_LIMITS)))

    answer = yield from upload(
        session.client.attempts(timeout_s),
        RESTORE_EVENTS,
        requests,
        may_repeat=iter(events) is not events,
    )
    session.saw(answer.next_seq)
    return Restored(answer.count, answer.next_seq)


def _restore_batch(events: list[raw_pb2.RawEvent]) -> raw_pb2.RawRestoreEventsRequest:
    return raw_pb2.RawRestoreEventsRequest(batch=raw_pb2.RawRestoreBatch(events=events))
