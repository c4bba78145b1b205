"""What a batch with replaces is judged on: the fold, and the results that its trims replace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from foldlog.application.decisions import Placing
from foldlog.application.domain import Session
from foldlog.application.fold import Fold, Live, RowRef
from foldlog.application.incoming import Incoming
from foldlog.application.lane import Lane
from foldlog.application.readers import HEAVY_BYTES
from foldlog.application.rows import RowReader
from foldlog.codec import message_from_proto
from foldlog.core.errors import FoldlogError
from foldlog.core.surface import Surface
from foldlog.core.trim import Said
from foldlog.v1.event_pb2 import EventBody


@dataclass(frozen=True, slots=True)
class Ground:
    """A fold, its surface as it is now, and the messages of stored results that a batch trims."""

    fold: Fold
    surface: Surface[Live]
    originals: Mapping[RowRef, Said] = field(default_factory=dict)


async def ground_of(lane: Lane, batch: Sequence[Incoming]) -> Ground:
    """Return what the batch is judged on, all of one moment: nothing of the lane is in flight."""
    while True:
        fold, version = await lane.current_fold(), lane.head.version
        if not any(event.trim for event in batch):
            return Ground(fold, fold.surface.copy())
        services, head, surface = lane.services, lane.head.copy(), fold.surface.copy()
        wanted = await services.workers.run(HEAVY_BYTES, _trimmed_rows, head, surface, batch)
        originals = await services.readers.run(_said, services.history.reader, wanted)
        if lane.head.version == version:  # else another process wrote meanwhile
            return Ground(fold, fold.surface.copy(), originals)


def _trimmed_rows(head: Session, surface: Surface[Live], batch: Sequence[Incoming]) -> list[RowRef]:
    placing = Placing(head, surface, require_balanced=False, originals=None)
    with suppress(FoldlogError):  # the decision says so, after what comes before it
        for index, event in enumerate(batch):
            placing.place(index, event)
    return placing.trimmed


def _said(reader: RowReader, rows: Iterable[RowRef]) -> dict[RowRef, Said]:
    wanted: dict[UUID, list[int]] = {}
    for row in rows:
        wanted.setdefault(row.aggregate_id, []).append(row.version)
    return {
        row.ref: _said_in(EventBody.FromString(row.envelope.body))
        for aggregate_id, versions in wanted.items()
        for row in reader.some(aggregate_id, versions)
    }


def _said_in(body: EventBody) -> Said:
    group = body.group if body.HasField("group") else None
    return Said(message_from_proto(body.message), group)
