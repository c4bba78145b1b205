"""The calls that write: each is one write in its session's lane."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from foldlog.application import decisions
from foldlog.application.decisions import Appended, Call, Cut, Guard, Origins
from foldlog.application.domain import Answered, RequestKey, Segment, Session, turns_from
from foldlog.application.fold import Fold
from foldlog.application.history import spans_of
from foldlog.application.identity import SERVER_MADE, derived_session_id
from foldlog.application.incoming import Incoming, content_digest, require_size
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.rows import Row
from foldlog.application.seal import GENESIS
from foldlog.application.texts import cut_headers
from foldlog.application.trimming import Ground, ground_of
from foldlog.core.canonical import check_free_json
from foldlog.core.errors import HistoryDroppedError
from foldlog.core.validation import (
    validate_labels,
    validate_request_id,
    validate_session_id,
)
from foldlog.internal.v1.storage_pb2 import StoredFact
from foldlog.settings import Limits


class Writing:
    """Decides, stores and answers."""

    def __init__(self, services: Services, lanes: Lanes, limits: Limits, tenant: str) -> None:
        self._services = services
        self._lanes = lanes
        self._limits = limits
        self._tenant = tenant

    # What every write shares

    def request(self, request_id: str, *content: bytes) -> RequestKey:
        """Return a write's key.

        Without an id the service makes one, so that its own retries are known.
        """
        validate_request_id(request_id, self._limits.request_id_bytes)
        return RequestKey(request_id or f"{SERVER_MADE}{uuid4().hex}", content_digest(content))

    def judge_session_id(self, session_id: str) -> None:
        """Raise InvalidFieldError or TooLargeError unless the id may name a session."""
        validate_session_id(session_id, self._limits.session_id_bytes)

    def judge_description(self, labels: Mapping[str, str], metadata_json: str) -> None:
        """Raise InvalidFieldError or TooLargeError unless labels and metadata may be kept."""
        limits = self._limits
        validate_labels(labels, limits.labels, limits.label_bytes)
        if metadata_json:
            require_size("metadata_json", len(metadata_json.encode()), limits.metadata_bytes)
            check_free_json(metadata_json, "metadata_json", limits.json_depth)

    def call(self, request: RequestKey) -> Call:
        """Return what a decision is given."""
        return Call(request, time.time_ns())

    async def _write(self, session_id: str, write: Write) -> tuple[Session, Any]:
        with self._lanes.use(self._tenant, session_id) as lane:
            answer = await lane.write(write)
            return lane.head, answer

    # Sessions

    async def create(
        self, session_id: str, request_id: str, labels: Mapping[str, str], metadata_json: str
    ) -> Session:
        """Create a session and return its head."""
        request = self.request(request_id, *_described("create", labels, metadata_json))
        session_id = session_id or derived_session_id(self._tenant, "", request.request_id)
        self.judge_session_id(session_id)
        self.judge_description(labels, metadata_json)

        def decide(head: Session, _: object) -> Decided:
            key = secrets.token_bytes(32)
            call = self.call(request)
            return decisions.create(head, call, session_id, labels, metadata_json, key)

        head, _ = await self._write(session_id, Write(request, decide, _nothing))
        return head

    async def update(
        self,
        session_id: str,
        request_id: str,
        set_labels: Mapping[str, str],
        remove_labels: Sequence[str],
        metadata_json: str | None,
    ) -> Session:
        """Change labels and metadata and return the head."""
        given = metadata_json if metadata_json is not None else "\0"
        content = _described("update", set_labels, given)
        request = self.request(request_id, *content, *(name.encode() for name in remove_labels))
        self.judge_session_id(session_id)
        self.judge_description(set_labels, metadata_json or "")

        def change(labels: Mapping[str, str]) -> Mapping[str, str]:
            kept = {k: v for k, v in labels.items() if k not in set(remove_labels)}
            changed = kept | dict(set_labels)
            self.judge_description(changed, "")
            return changed

        def decide(head: Session, _: object) -> Decided:
            call = self.call(request)
            return decisions.update(head, call, session_id, change, metadata_json)

        head, _ = await self._write(session_id, Write(request, decide, _nothing))
        return head

    async def delete(self, session_id: str, request_id: str) -> int:
        """Delete a session and return the seq its next event would have taken."""
        request = self.request(request_id, b"delete")
        self.judge_session_id(session_id)

        def decide(head: Session, _: object) -> Decided:
            return decisions.delete(head, self.call(request), session_id)

        head, _ = await self._write(session_id, Write(request, decide, _nothing))
        return head.next_seq

    async def open_writer(
        self, session_id: str, request_id: str, expected_epoch: int | None, owner: str
    ) -> tuple[int, int]:
        """Begin a writer epoch and return (epoch, next_seq)."""
        request = self.request(
            request_id, b"open_writer", str(expected_epoch).encode(), owner.encode()
        )
        self.judge_session_id(session_id)
        require_size("owner", len(owner.encode()), self._limits.label_bytes)

        def decide(head: Session, _: object) -> Decided:
            return decisions.open_writer(
                head, self.call(request), session_id, expected_epoch, owner
            )

        async def replay(lane: Lane, answered: Answered) -> tuple[int, int]:
            (row,) = await self.answered_rows(lane, answered)
            fact = StoredFact.FromString(row.envelope.body).fact
            return fact.writer_opened.epoch, row.envelope.seq

        _, answer = await self._write(session_id, Write(request, decide, replay))
        epoch, next_seq = answer
        return epoch, next_seq

    async def close_writer(self, session_id: str, request_id: str, epoch: int) -> int:
        """End a writer epoch and return next_seq."""
        request = self.request(request_id, b"close_writer", str(epoch).encode())
        self.judge_session_id(session_id)

        def decide(head: Session, _: object) -> Decided:
            return decisions.close_writer(head, self.call(request), session_id, epoch)

        _, answer = await self._write(session_id, Write(request, decide, self._replay_seq))
        return int(answer)

    # Events

    async def write(self, session_id: str, write: Write) -> Any:
        """Let a write be decided in its session's lane and return its answer once it is durable."""
        _, answer = await self._write(session_id, write)
        return answer

    def append_write(
        self,
        session_id: str,
        request: RequestKey,
        batch: Sequence[Incoming],
        guard: Guard,
        *,
        require_balanced: bool = False,
        validate_only: bool = False,
    ) -> Write:
        """Return the write that appends a batch."""
        self.judge_session_id(session_id)
        needs_fold = any(event.replace is not None for event in batch)
        batch, contents = cut_headers(batch)

        async def ground(lane: Lane) -> Ground:
            return await ground_of(lane, batch)

        def decide(head: Session, ground: Ground | None) -> Decided:
            return decisions.append(
                head,
                self.call(request),
                session_id,
                batch,
                guard,
                ground.fold if ground else None,
                originals=ground.originals if ground else {},
                require_balanced=require_balanced,
                validate_only=validate_only,
            )

        async def replay(lane: Lane, answered: Answered) -> Appended:
            rows = await self.answered_rows(lane, answered)
            return decisions.appended_from([row.envelope for row in rows])

        objects = self._services.objects
        prepare = objects.preparing(batch, ground if needs_fold else None)
        if contents and not validate_only:
            prepare = objects.keeping(contents, prepare)
        return Write(request, decide, replay, prepare)

    async def rewind(
        self,
        session_id: str,
        request_id: str,
        to_seq: int,
        guard: Guard,
        require_closed_turn: bool,
    ) -> tuple[int, int, Cut]:
        """Rewind and return (seq of the rewind, next_seq, what is open)."""
        request = self.request(request_id, b"rewind", str(to_seq).encode())
        self.judge_session_id(session_id)

        async def prepare(lane: Lane) -> Fold:
            head = await lane.refresh()
            decisions.require_session(head, session_id)
            return await self._fold_at(lane, to_seq, "to_seq")

        def decide(head: Session, target: Fold) -> Decided:
            if require_closed_turn:
                decisions.require_closed_turn(target.turns)
            return decisions.rewind(head, self.call(request), session_id, to_seq, guard, target)

        async def replay(lane: Lane, answered: Answered) -> tuple[int, int, Cut]:
            (row,) = await self.answered_rows(lane, answered)
            envelope = row.envelope
            turns = turns_from(envelope.turns)
            cut = Cut(turns.open_turn_seq, tuple(envelope.unanswered_call_ids))
            return envelope.seq, envelope.seq + 1, cut

        _, answer = await self._write(session_id, Write(request, decide, replay, prepare))
        seq, next_seq, cut = answer
        return seq, next_seq, cut

    async def fork(
        self,
        session_id: str,
        request_id: str,
        child_id: str,
        at_seq: int | None,
        labels: Mapping[str, str],
        metadata_json: str,
        require_closed_turn: bool,
    ) -> tuple[Session, Cut]:
        """Fork a session and return the child's head and what is open at the cut."""
        content = _described("fork", labels, metadata_json)
        request = self.request(request_id, *content, session_id.encode(), str(at_seq).encode())
        child_id = child_id or derived_session_id(self._tenant, session_id, request.request_id)
        self.judge_session_id(session_id)
        self.judge_session_id(child_id)
        self.judge_description(labels, metadata_json)

        async def prepare(_: Lane) -> Origins:
            origins = await self._origins(session_id, at_seq)
            if require_closed_turn:
                decisions.require_closed_turn(origins.turns)
            return origins

        def decide(head: Session, origins: Origins) -> Decided:
            key = secrets.token_bytes(32)
            return decisions.fork(
                head, self.call(request), child_id, origins, labels, metadata_json, key
            )

        async def replay(lane: Lane, answered: Answered) -> Cut:
            (row,) = await self.answered_rows(lane, answered)
            origin = StoredFact.FromString(row.envelope.body).origin
            turns = turns_from(origin.turns)
            return Cut(turns.open_turn_seq, tuple(origin.unanswered_call_ids))

        head, cut = await self._write(child_id, Write(request, decide, replay, prepare))
        await self._require_whole(child_id, session_id, head)
        return head, cut

    async def _origins(self, session_id: str, at_seq: int | None) -> Origins:
        with self._lanes.use(self._tenant, session_id) as parent:
            head = await parent.refresh()
            decisions.require_session(head, session_id)
            seq = head.next_seq - 1 if at_seq is None else at_seq
            decisions.require_seq(head, seq, "at_seq")
            fold = await self._fold_at(parent, seq, "at_seq")
            reader = self._services.history.reader
            spans = spans_of(head)
            if seq != head.next_seq - 1:
                spans = await self._services.readers.run(reader.cut, spans, seq)
            spans = contributing(spans)
            chain = await self._services.readers.run(self._chain_at, spans)
            return Origins(
                session_id,
                seq,
                tuple(spans),
                chain,
                fold.turns,
                *_whole_from(head, seq),
                decisions.cut_of(fold),
            )

    def _chain_at(self, spans: Sequence[Segment]) -> bytes:
        if not spans:
            return GENESIS
        reader = self._services.history.reader
        last = spans[-1]
        (row,) = reader.some(last.aggregate_id, [last.to_version])
        return row.envelope.chain

    async def _require_whole(self, child_id: str, parent_id: str, child: Session) -> None:
        """Undo a fork whose parent dropped what it reads while it was made."""
        with self._lanes.use(self._tenant, parent_id) as parent:
            head = await parent.refresh()
        if child.parent is None or head.whole_from_seq <= child.whole_from_seq:
            return
        with self._lanes.use(self._tenant, child_id) as lane:
            try:
                await self._fold_at(lane, child.parent[1], "at_seq")
            except HistoryDroppedError:
                await self.delete(child_id, "")
                raise

    # Looking back

    async def _fold_at(self, lane: Lane, seq: int, field: str) -> Fold:
        decisions.require_seq(lane.head, seq, field)
        if seq == lane.head.next_seq - 1:
            return (await lane.current_fold(lane.head.next_seq)).sound()
        return await self._services.readers.run(self._services.history.fold_at, lane.head, seq)

    async def answered_rows(self, lane: Lane, answered: Answered) -> list[Row]:
        """Return the rows that a write wrote, in order."""
        first = answered.version
        reader = self._services.history.reader

        def read() -> list[Row]:
            last = first + answered.row_count - 1
            return [row.sound() for row in reader.rows(lane.id, first - 1, last)]

        return await self._services.readers.run(read)

    async def _replay_seq(self, lane: Lane, answered: Answered) -> int:
        rows = await self.answered_rows(lane, answered)
        return rows[-1].envelope.seq


def _whole_from(head: Session, seq: int) -> tuple[int, int | None]:
    """Return from where a fork at a seq is whole, and the lowest seq it lacks."""
    lowest = head.dropped_from_seq
    if lowest is None or seq < lowest:
        return 0, None
    return min(head.whole_from_seq, seq + 1), lowest


def contributing(spans: Sequence[Segment]) -> list[Segment]:
    """Return a lineage without the stretches that hold no event."""
    kept: list[Segment] = []
    for span in spans:
        if span.to_seq > (kept[-1].to_seq if kept else -1):
            kept.append(span)
    return kept


async def _nothing(_: Lane, __: Answered) -> None:
    """Replay a write whose answer is the head itself."""


def _described(what: str, labels: Mapping[str, str], metadata_json: str) -> list[bytes]:
    pairs = [part.encode() for pair in sorted(labels.items()) for part in pair]
    return [what.encode(), *pairs, metadata_json.encode()]
