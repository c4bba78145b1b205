"""The calls that write: each is one write in its session's lane."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from eventsourcing.persistence import StoredEvent

from foldlog.application import decisions
from foldlog.application.decisions import Appended, Call, Cut, Guard, Origins, cut_of
from foldlog.application.domain import Answered, RequestKey, Segment, Session, turns_from
from foldlog.application.fold import Fold, Live
from foldlog.application.history import spans_of
from foldlog.application.identity import client_key, derived_session_id, server_key
from foldlog.application.incoming import Incoming, content_digest, require_size, weight_of
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.mapper import domain_event
from foldlog.application.readers import HEAVY_BYTES
from foldlog.application.rows import Row
from foldlog.application.scope import Scope
from foldlog.application.seal import GENESIS
from foldlog.application.trimming import Ground, ground_of
from foldlog.core.canonical import check_free_json
from foldlog.core.errors import HistoryDroppedError, PermissionDeniedError, SessionDeletedError
from foldlog.core.turns import TurnState
from foldlog.core.validation import validate_labels, validate_request_id
from foldlog.internal.v1.storage_pb2 import StoredFact
from foldlog.settings import Limits

OPEN_AT_ONCE = 2_000  # entries and calls that are looked at without leaving the loop


class Writing:
    """Decides, stores and answers."""

    def __init__(
        self, services: Services, lanes: Lanes, limits: Limits, tenant: str, scope: Scope
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._limits = limits
        self._tenant = tenant
        self._scope = scope

    # What every write shares

    def request(self, request_id: str, *content: bytes) -> RequestKey:
        """Return a write's key.

        Without an id the service makes one, so that its own retries are known.
        """
        validate_request_id(request_id, self._limits.request_id_bytes)
        key = client_key(request_id) if request_id else server_key(uuid4().hex)
        return RequestKey(key, content_digest(content))

    def judge_description(self, labels: Mapping[str, str], metadata_json: str) -> None:
        """Raise InvalidFieldError or TooLargeError unless labels and metadata may be kept."""
        limits = self._limits
        validate_labels(labels, limits.labels, limits.label_bytes)
        if metadata_json:
            require_size("metadata_json", len(metadata_json.encode()), limits.metadata_bytes)
            check_free_json(metadata_json, "metadata_json", limits.json_depth)

    def require_labels(self, action: str, labels: Mapping[str, str]) -> None:
        """Raise PermissionDeniedError unless a session may get these labels from the caller."""
        self._scope.require(action, labels)

    def call(self, request: RequestKey) -> Call:
        """Return what a decision is given."""
        return Call(request, time.time_ns())

    async def _write(self, session_id: str, write: Write) -> tuple[Session, Any]:
        async with self._lanes.use(self._tenant, session_id) as lane:
            answer = await lane.write(write)
            return lane.head.copy(), answer

    # Sessions

    async def create(
        self,
        session_id: str,
        request_id: str,
        labels: Mapping[str, str],
        metadata_json: str,
        *,
        is_own: bool = False,
    ) -> Session:
        """Create a session and return its head; one of the service's own if it says so."""
        request = self.request(request_id, *_described("create", labels, metadata_json))
        session_id = session_id or derived_session_id(self._tenant, "", request.key)
        self.judge_description(labels, metadata_json)
        self.require_labels("CreateSession", labels)

        def decide(head: Session, _: object) -> Decided:
            key = secrets.token_bytes(32)
            call = self.call(request)
            return decisions.create(head, call, session_id, labels, metadata_json, key)

        write = Write(request, decide, self._as_begun, is_own=is_own)
        head, first = await self._write(session_id, write)
        return first or head

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
        self.judge_description(set_labels, metadata_json or "")

        def change(labels: Mapping[str, str]) -> Mapping[str, str]:
            kept = {k: v for k, v in labels.items() if k not in set(remove_labels)}
            changed = kept | dict(set_labels)
            self.judge_description(changed, "")
            self.require_labels("UpdateSession", changed)
            return changed

        def decide(head: Session, _: object) -> Decided:
            call = self.call(request)
            return decisions.update(head, call, session_id, change, metadata_json)

        async def replay(lane: Lane, answered: Answered) -> Session:
            (row,) = await self.answered_rows(lane, answered)
            fact = StoredFact.FromString(row.envelope.body).fact.updated
            head = lane.head.copy()
            head.labels, head.metadata_json = dict(fact.labels), fact.metadata_json
            head.next_seq, head.updated_ns = row.envelope.seq, row.envelope.written_ns
            return head

        head, first = await self._write(session_id, Write(request, decide, replay))
        return first or head

    async def delete(self, session_id: str, request_id: str) -> int:
        """Delete a session and return the seq its next event would have taken."""
        request = self.request(request_id, b"delete")

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
        require_size("owner", len(owner.encode()), self._limits.label_bytes)

        def decide(head: Session, _: object) -> Decided:
            return decisions.open_writer(
                head, self.call(request), session_id, expected_epoch, owner
            )

        async def replay(lane: Lane, answered: Answered) -> tuple[int, int]:
            (row,) = await self.answered_rows(lane, answered)
            fact = StoredFact.FromString(row.envelope.body).fact
            return fact.writer_opened.epoch, row.envelope.seq

        epoch, next_seq = await self.write(session_id, Write(request, decide, replay))
        return epoch, next_seq

    async def close_writer(self, session_id: str, request_id: str, epoch: int) -> int:
        """End a writer epoch and return next_seq."""
        request = self.request(request_id, b"close_writer", str(epoch).encode())

        def decide(head: Session, _: object) -> Decided:
            return decisions.close_writer(head, self.call(request), session_id, epoch)

        return int(await self.write(session_id, Write(request, decide, self._replay_seq)))

    # Events

    async def write(self, session_id: str, write: Write) -> Any:
        """Let a write be decided in its session's lane and return its answer once it is durable."""
        async with self._lanes.use(self._tenant, session_id) as lane:
            return await lane.write(write)

    def append_write(
        self,
        session_id: str,
        request: RequestKey,
        batch: Sequence[Incoming],
        contents: Sequence[bytes],
        guard: Guard,
        *,
        require_balanced: bool = False,
        validate_only: bool = False,
    ) -> Write:
        """Return the write that appends a batch; `contents` are the texts that its headers lack."""
        needs_fold = any(event.replace is not None for event in batch)

        async def ground(lane: Lane) -> Ground:
            write.weight_bytes = HEAVY_BYTES  # how many calls are on the surface is not known
            return await ground_of(lane, batch)

        def decide(head: Session, ground: Ground | None) -> Decided:
            return decisions.append(
                head,
                self.call(request),
                session_id,
                batch,
                guard,
                ground.surface if ground else None,
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
        write = Write(request, decide, replay, prepare, weight_of(batch))
        return write

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

        async def prepare(lane: Lane) -> tuple[Fold, Cut]:
            head = await lane.refresh()
            decisions.require_session(head, session_id)
            target = (await self._fold_at(lane, to_seq, "to_seq")).copy()
            return target, await self._cut_of(target)

        def decide(head: Session, found: tuple[Fold, Cut]) -> Decided:
            target, cut = found
            if require_closed_turn:
                decisions.require_closed_turn(target.turns)
            call = self.call(request)
            return decisions.rewind(head, call, session_id, to_seq, guard, target, cut)

        async def replay(lane: Lane, answered: Answered) -> tuple[int, int, Cut]:
            (row,) = await self.answered_rows(lane, answered)
            envelope = row.envelope
            turns = turns_from(envelope.turns)
            cut = Cut(turns.open_turn_seq, tuple(envelope.unanswered_call_ids))
            return envelope.seq, envelope.seq + 1, cut

        seq, next_seq, cut = await self.write(session_id, Write(request, decide, replay, prepare))
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
        child_id = child_id or derived_session_id(self._tenant, session_id, request.key)
        self.judge_description(labels, metadata_json)
        self.require_labels("ForkSession", labels)

        async def prepare(_: Lane) -> Origins:
            origins = await self._origins(session_id, at_seq)
            if require_closed_turn:
                decisions.require_closed_turn(origins.turns)
            return origins

        made: list[Origins] = []

        def decide(head: Session, origins: Origins) -> Decided:
            key, call = secrets.token_bytes(32), self.call(request)
            decided = decisions.fork(head, call, child_id, origins, labels, metadata_json, key)
            made.append(origins)
            return decided

        async def replay(lane: Lane, answered: Answered) -> tuple[Session, Cut]:
            (row,) = await self.answered_rows(lane, answered)
            origin = StoredFact.FromString(row.envelope.body).origin
            turns = turns_from(origin.turns)
            cut = Cut(turns.open_turn_seq, tuple(origin.unanswered_call_ids))
            return await self._as_begun(lane, answered), cut

        head, answer = await self._write(child_id, Write(request, decide, replay, prepare))
        if made:
            await self._require_whole(child_id, made[-1])
        return answer if isinstance(answer, tuple) else (head, answer)

    async def _origins(self, session_id: str, at_seq: int | None) -> Origins:
        async with self._lanes.use(self._tenant, session_id) as parent:
            if parent.is_reserved:
                raise PermissionDeniedError(
                    action=f"forking {session_id}", needs="the service itself"
                )
            head = (await parent.refresh()).copy()  # the parent goes on while we wait
            decisions.require_session(head, session_id)
            decisions.require_unerased(head, session_id)
            seq = head.next_seq - 1 if at_seq is None else at_seq
            decisions.require_seq(head, seq, "at_seq")
            turns, cut = await self._open_at(parent, head, seq)
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
                turns,
                *_whole_from(head, seq),
                head.drop_versions,
                cut,
            )

    async def _open_at(self, lane: Lane, head: Session, seq: int) -> tuple[TurnState, Cut]:
        """Return the turns after a seq, and what is open there.

        Without a look at the log where the fold that is at hand tells it.
        """
        fold = lane.fold
        is_at_hand = fold is not None and fold.next_seq == head.next_seq
        if fold is not None and is_at_hand and head.dropped_from_seq is None:
            found = fold.open_at(seq)
            if found is not None and _is_light(found[1]):
                turns, entries = found
                return turns, cut_of(turns, entries)
        fold = await lane.fold_at(head, seq)
        return fold.turns, await self._cut_of(fold)

    async def _cut_of(self, fold: Fold) -> Cut:
        """Return what is open at a fold as it is now."""
        entries = tuple(fold.surface)
        return await self._services.workers.run(HEAVY_BYTES, cut_of, fold.turns, entries)

    def _chain_at(self, spans: Sequence[Segment]) -> bytes:
        if not spans:
            return GENESIS
        reader = self._services.history.reader
        last = spans[-1]
        (row,) = reader.some(last.aggregate_id, [last.to_version])
        return row.envelope.chain

    async def _require_whole(self, child_id: str, origins: Origins) -> None:
        """Undo a fork whose parent said meanwhile that what it reads is dropped, or erased.

        The parent's purge may not have seen the fork, so what is still there is no help.
        """
        async with self._lanes.use(self._tenant, origins.parent_session_id) as parent:
            head = await parent.refresh()
            if head.is_erasing or head.is_erased:
                await self.delete(child_id, "")
                raise SessionDeletedError(session_id=origins.parent_session_id)
            if head.drop_versions == origins.drop_versions:
                return
            try:
                await self._fold_at(parent, origins.at_seq, "at_seq")
            except HistoryDroppedError:
                await self.delete(child_id, "")
                raise

    # Looking back

    async def _fold_at(self, lane: Lane, seq: int, field: str) -> Fold:
        head = lane.head.copy()  # the lane goes on while we wait
        decisions.require_seq(head, seq, field)
        return await lane.fold_at(head, seq)

    async def _as_begun(self, lane: Lane, _: Answered) -> Session:
        """Return the head as it was after the session's first row."""
        reader = self._services.history.reader
        (row,) = await self._services.readers.run(lambda: list(reader.some(lane.id, [1])))
        head = Session.blank(lane.id, lane.tenant)
        domain_event(StoredEvent(lane.id, 1, row.topic, b""), row.envelope).mutate(head)
        return head

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


def _is_light(entries: Sequence[Live]) -> bool:
    """Tell whether entries and their calls are few enough to be looked at on the loop."""
    return (
        len(entries) <= OPEN_AT_ONCE
        and sum(1 + len(entry.call_ids) for entry in entries) <= OPEN_AT_ONCE
    )


async def _nothing(_: Lane, __: Answered) -> None:
    """Replay a write whose answer is the head itself."""


def _described(what: str, labels: Mapping[str, str], metadata_json: str) -> list[bytes]:
    pairs = [part.encode() for pair in sorted(labels.items()) for part in pair]
    return [what.encode(), str(len(labels)).encode(), *pairs, metadata_json.encode()]
