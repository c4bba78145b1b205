"""What is known of the request of a session's latest step: whether the next one extends it."""

from __future__ import annotations

from collections import OrderedDict
from uuid import UUID

from foldlog.application.fold import EventRef, RowRef
from foldlog.application.history import spans_of
from foldlog.application.lane import Lane, Services
from foldlog.application.requests import Requests
from foldlog.application.rows import Row, request_next_seq
from foldlog.core.errors import EventCorruptError, HeaderMissingError, HistoryDroppedError
from foldlog.internal.v1.storage_pb2 import RequestMark

MAX_MARKS = 2_000
# Why a request cannot be made again, so that nothing extends it.
LOST = (EventCorruptError, HeaderMissingError, HistoryDroppedError)


class Marks:
    """Finds the marks of steps: in memory, in the step's row, or by building its request again."""

    def __init__(self, services: Services, requests: Requests) -> None:
        self._services = services
        self._requests = requests
        self._held: OrderedDict[tuple[UUID, RowRef], RequestMark] = OrderedDict()

    async def of(self, lane: Lane, step: EventRef | None) -> RequestMark | None:
        """Return what is known of a step's request; None if there is no step or it has none."""
        if step is None:
            return None
        mark = self._held.get((lane.id, step.row))
        if mark is None:
            mark = await self._found(lane, step)
            self.keep(lane.id, step.row, mark)
        return mark if mark.encoding_sha256 else None

    def keep(self, owner: UUID, row: RowRef, mark: RequestMark) -> None:
        """Keep the mark of a step as a session sees it."""
        self._held[owner, row] = mark
        if len(self._held) > MAX_MARKS:
            self._held.popitem(last=False)

    async def _found(self, lane: Lane, step: EventRef) -> RequestMark:
        head, services = lane.head, self._services
        row = await services.readers.run(self._row, step.row)
        next_seq = request_next_seq(row, spans_of(head))
        mark = RequestMark()
        mark.CopyFrom(row.envelope.request_mark)
        if mark.encoding_sha256 and mark.next_seq == next_seq:
            return mark
        try:
            fold = await services.readers.run(services.history.fold_at, head, next_seq - 1)
            state = await self._requests.state(fold, next_seq, head.session_id)
            hashed = self._requests.hashes.start(lane, state)
            await self._requests.grow(hashed, state.entries)
        except LOST:
            return RequestMark(next_seq=next_seq)
        return RequestMark(next_seq=next_seq, count=hashed.count, encoding_sha256=hashed.digest)

    def _row(self, ref: RowRef) -> Row:
        (row,) = self._services.history.reader.some(ref.aggregate_id, [ref.version])
        return row
