"""Heads and folds to checkpoints and back.

A checkpoint holds no body and can always be made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import pairwise
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog.application.domain import (
    Answered,
    Run,
    Segment,
    Session,
    segments_from,
    turns_from,
    turns_to,
)
from foldlog.application.fold import EventRef, Fold, Live, Rewound, RowRef, Shadow
from foldlog.internal.v1 import storage_pb2 as pb

TOPIC = "checkpoint"
SEAL = b"\x22\x20"  # the tag of `sha256` and its length


def sealed(head: Session, fold: Fold, owners: Sequence[UUID]) -> bytes:
    """Return a checkpoint's state, bound to the session and the version that it stands at."""
    state = pb.Checkpoint(head=head_to(head), fold=fold_to(fold, owners)).SerializeToString()
    return state + SEAL + _digest(head.id, head.version, state)


def unsealed(aggregate_id: UUID, version: int, state: bytes) -> pb.Checkpoint | None:
    """Return a checkpoint, or None for one that is damaged, or was not made for this place."""
    body = state[: -len(SEAL) - 32]
    if state != body + SEAL + _digest(aggregate_id, version, body):
        return None
    try:
        return pb.Checkpoint.FromString(body)
    except DecodeError:
        return None


def _digest(aggregate_id: UUID, version: int, state: bytes) -> bytes:
    return sha256(aggregate_id.bytes + version.to_bytes(8) + state).digest()


def head_to(head: Session) -> pb.HeadState:
    """Return a head's state."""
    parent_id, parent_seq = head.parent or ("", 0)
    return pb.HeadState(
        version=head.version,
        next_seq=head.next_seq,
        chain=head.chain,
        origin=origin_of(head.session_id, head.key, head.segments),
        labels=head.labels,
        metadata_json=head.metadata_json,
        created_ns=head.created_ns,
        updated_ns=head.updated_ns,
        parent_session_id=parent_id,
        parent_at_seq=parent_seq,
        epoch=head.epoch,
        last_epoch=head.last_epoch,
        deleted=head.is_deleted,
        erasing=head.is_erasing,
        erased=head.is_erased,
        runs=[pb.Run(version=r.version, seq=r.seq, count=r.count) for r in head.runs],
        requests=[
            pb.RecentRequest(
                request_key=key, version=a.version, row_count=a.row_count, digest=a.digest
            )
            for key, a in head.requests.items()
        ],
        turns=turns_to(head.turns),
        whole_from_seq=head.whole_from_seq,
        header_epoch=head.header_epoch,
        dropped_from_seq=head.dropped_from_seq,
        drop_versions=head.drop_versions,
    )


def head_from(state: pb.HeadState, aggregate_id: UUID, tenant: str) -> Session:
    """Return the head a checkpoint holds."""
    head = Session.blank(aggregate_id, tenant)
    head.version, head.next_seq, head.chain = state.version, state.next_seq, state.chain
    head.session_id, head.key = state.origin.session_id, state.origin.key
    head.segments = segments_from(state.origin.segments)
    head.labels, head.metadata_json = dict(state.labels), state.metadata_json
    head.created_ns, head.updated_ns = state.created_ns, state.updated_ns
    if state.parent_session_id:
        head.parent = (state.parent_session_id, state.parent_at_seq)
    head.epoch, head.last_epoch, head.is_deleted = state.epoch, state.last_epoch, state.deleted
    head.is_erasing, head.is_erased = state.erasing, state.erased
    head.runs = [Run(r.version, r.seq, r.count) for r in state.runs]
    head.requests = {
        r.request_key: Answered(r.version, r.row_count, r.digest) for r in state.requests
    }
    head.turns, head.whole_from_seq = turns_from(state.turns), state.whole_from_seq
    head.header_epoch = state.header_epoch
    head.drop_versions = tuple(state.drop_versions)
    if state.HasField("dropped_from_seq"):
        head.dropped_from_seq = state.dropped_from_seq
    return head


def origin_of(session_id: str, key: bytes, segments: Iterable[Segment]) -> pb.Origin:
    """Return what a session's first row says of where it comes from."""
    return pb.Origin(
        session_id=session_id,
        key=key,
        segments=[
            pb.Segment(
                aggregate_id=s.aggregate_id.bytes,
                session_id=s.session_id,
                to_version=s.to_version,
                to_seq=s.to_seq,
            )
            for s in segments
        ],
    )


def fold_to(fold: Fold, owners: Sequence[UUID]) -> pb.FoldState:
    """Return a fold's state; `owners` are the lineage's aggregate ids, the session's own last."""
    number = {owner: index for index, owner in enumerate(owners)}
    return pb.FoldState(
        surface=_runs(fold, number),
        replaces=[n for s in fold.replaces for n in (s.seq, s.start, s.stop)],
        rewinds=[n for r in fold.rewinds for n in (r.seq, r.to_seq)],
        header=_place_to(fold.header, number),
        next_seq=fold.next_seq,
        turns=turns_to(fold.turns),
        step=_place_to(fold.step, number),
    )


def _place_to(place: EventRef | None, number: dict[UUID, int]) -> list[int]:
    return [] if place is None else [number[place.row.aggregate_id], place.row.version, place.seq]


def _place_from(state: Sequence[int], owners: Sequence[UUID]) -> EventRef | None:
    if not state:
        return None
    segment, version, seq = state
    return EventRef(seq, RowRef(owners[segment], version))


def _runs(fold: Fold, number: dict[UUID, int]) -> list[pb.SurfaceRun]:
    entries = fold.surface.entries
    fold.find_runs(len(entries))
    return [
        pb.SurfaceRun(
            position=entries[first].position,
            seq=entries[first].seq,
            version=entries[first].row.version,
            count=stop - first,
            segment=number[entries[first].row.aggregate_id],
        )
        for first, stop in pairwise([*fold.run_starts, len(entries)])
    ]


def standing(state: pb.FoldState, owners: Sequence[UUID]) -> list[tuple[int, int, RowRef]]:
    """Return (position, seq, row) of each entry on a checkpoint's surface, in model order."""
    return [
        (run.position + i, run.seq + i, RowRef(owners[run.segment], run.version + i))
        for run in state.surface
        for i in range(run.count)
    ]


def fold_from(state: pb.FoldState, owners: Sequence[UUID], entries: Iterable[Live]) -> Fold:
    """Return the fold a checkpoint holds, given the entries of its surface."""
    fold = Fold()
    for live in entries:
        fold.surface.insert(live)
    fold.replaces = [Shadow(*triple) for triple in zip(*[iter(state.replaces)] * 3, strict=True)]
    fold.rewinds = [Rewound(*pair) for pair in zip(*[iter(state.rewinds)] * 2, strict=True)]
    fold.header = _place_from(state.header, owners)
    fold.step = _place_from(state.step, owners)
    fold.begin_at(state.next_seq, turns_from(state.turns))
    return fold
