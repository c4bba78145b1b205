"""An audit of checkpoints: each is to be what the rows come to that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog.application.checkpoint import fold_to
from foldlog.application.domain import Segment
from foldlog.application.fold import Fold
from foldlog.application.history import History, owners_of
from foldlog.application.verdict import Fault
from foldlog.internal.v1.storage_pb2 import Checkpoint, HeadState
from foldlog.persistence.store import Store
from foldlog.v1.service_pb2 import AUDITED_PART_CHECKPOINT

PAGE = 10


def checkpoint_versions(store: Store, aggregate_id: UUID) -> list[int]:
    """Return the versions that a session's checkpoints stand at, ascending."""
    versions: list[int] = []
    after: int | None = None
    while page := store.checkpoints.select_events(aggregate_id, gt=after, limit=PAGE):
        versions += [row.originator_version for row in page]
        after = versions[-1]
    return versions


class CheckpointAudit:
    """Makes the fold at each checkpoint of a lineage again, in one pass from the first row on.

    Only for a lineage whose rows are sound. `states` are the heads made from the rows, by aggregate
    id and version.
    """

    def __init__(
        self,
        store: Store,
        history: History,
        spans: Sequence[Segment],
        states: Mapping[UUID, Mapping[int, HeadState]],
    ) -> None:
        self._store, self._history = store, history
        self._spans, self._states = spans, states

    def fault(self) -> Fault | None:
        """Return the first checkpoint's fault: those behind it may rest on it."""
        fold = Fold()
        wanted = [sorted(self._states[span.aggregate_id]) for span in self._spans]
        for index, (span, versions) in enumerate(zip(self._spans, wanted, strict=True)):
            if not any(wanted[index:]):
                return None
            after = 0
            for version in versions:
                next_seq = self._states[span.aggregate_id][version].next_seq
                fold = self._grown(
                    index, fold, after, replace(span, to_version=version, to_seq=next_seq - 1)
                )
                if not self._is_right(index, fold, version):
                    damage = f"that of {version} rows is not what the rows come to"
                    return Fault(span.session_id, None, damage, AUDITED_PART_CHECKPOINT)
                after = version
            if any(wanted[index + 1 :]):
                fold = self._grown(index, fold, after, span)
        return None

    def _grown(self, index: int, fold: Fold, after: int, span: Segment) -> Fold:
        fold = self._history.grown([*self._spans[:index], span], fold, after)
        fold.next_seq = span.to_seq + 1
        return fold

    def _is_right(self, index: int, fold: Fold, version: int) -> bool:
        aggregate_id = self._spans[index].aggregate_id
        rows = self._store.checkpoints.select_events(aggregate_id, gt=version - 1, lte=version)
        try:
            stored = [Checkpoint.FromString(row.state) for row in rows]
        except DecodeError:
            return False
        owners = owners_of(self._spans[: index + 1])
        made = Checkpoint(head=self._states[aggregate_id][version], fold=fold_to(fold, owners))
        for each in stored:
            each.ClearField("sha256")
        return all(each == made for each in stored)  # none: it was removed meanwhile
