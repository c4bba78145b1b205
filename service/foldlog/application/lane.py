"""A session in this process: its committed head and fold, and the writes under way.

Writes are decided in the order of arrival on a head that runs ahead of the store, so that many
may be in flight. When a commit fails, everything decided on it is decided again, in the same order,
on the head as the store has it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from eventsourcing.persistence import IntegrityError

from foldlog.application.bodies import KeptBodies
from foldlog.application.committer import Commit, Committer
from foldlog.application.domain import Answered, RequestKey, Session
from foldlog.application.fold import Fold, Passed, RowRef
from foldlog.application.history import History, Opened
from foldlog.application.identity import audit_id
from foldlog.application.mapper import stored_row
from foldlog.application.meter import Cost, Meter
from foldlog.application.readers import LIGHT_BYTES, Readers, Workers, is_unanswered
from foldlog.application.tail import Tail, TailRow
from foldlog.compression import Packer
from foldlog.core.errors import (
    FoldlogError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RequestIdReusedError,
    SessionExistsError,
    StoreUnavailableError,
)
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.rows import AUDIT_SESSION, SessionStoredEvent
from foldlog.persistence.store import Store

if TYPE_CHECKING:
    from foldlog.application.attachments import Attachments

MAX_ATTEMPTS = 100
KEPT_AT_ONCE = 2_000  # messages
WOKEN_AT_ONCE = 16  # watchers
ANSWERED_S = 0.002  # by then the write is answered that many watchers are to be told of


@dataclass(slots=True)
class Decided:
    """What a write came to: rows to store, and the answer once they are.

    No rows: the answer stands.
    """

    answer: Any
    events: Sequence[Session.Event] = ()
    passed: Sequence[Passed] = ()
    target: Fold | None = None  # what a rewind goes back to
    cost: Cost | None = None


@dataclass(slots=True)
class Write:
    """A call that writes.

    `decide` takes the head to build on and what `prepare` brought; it raises before it changes the
    head. `prepare` runs when nothing is in flight. `replay` makes the first answer again. A write
    of some weight is decided on a thread, with nothing in flight: there its `decide` may touch
    nothing that the loop changes.
    """

    request: RequestKey
    decide: Callable[[Session, Any], Decided]
    replay: Callable[[Lane, Answered], Awaitable[Any]]
    prepare: Callable[[Lane], Coroutine[Any, Any, Any]] | None = None
    weight_bytes: int = 0
    done: asyncio.Future[Any] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    context: Any = None
    is_prepared: bool = False
    is_confirmed: bool = False
    attempts: int = 0
    is_own: bool = False  # the service's, to a session that only it writes to
    on_failed: Callable[[], None] | None = None

    @property
    def is_heavy(self) -> bool:
        """Whether deciding it would hold up the loop."""
        return self.weight_bytes > LIGHT_BYTES

    def fail(self, error: BaseException) -> None:
        """Answer with an error, if still awaited."""
        if not self.done.done():
            if self.on_failed is not None:
                self.on_failed()  # now, before anything behind it is decided
            self.done.set_exception(error)

    def succeed(self, answer: Any) -> None:
        """Answer, if still awaited."""
        if not self.done.done():
            self.done.set_result(answer)


@dataclass(slots=True)
class Services:
    """What every lane of a tenant shares."""

    store: Store
    history: History
    readers: Readers
    workers: Workers
    committer: Committer
    on_stored: Callable[[Lane, Sequence[Session.Event], int], None]
    on_fold_wanted: Callable[[bool], None]
    objects: Attachments
    meter: Meter
    bodies: KeptBodies
    pack: Packer


class Lane:
    """One session in this process."""

    is_hidden = False

    def __init__(self, services: Services, aggregate_id: UUID, tenant: str) -> None:
        self.services = services
        self.id, self.tenant = aggregate_id, tenant
        self.is_reserved = aggregate_id == audit_id(tenant)
        # Who makes keys writes to the audit log beside a service on a SQLite file.
        self._is_alone = services.store.is_exclusive and not self.is_reserved
        self.head = Session.blank(aggregate_id, tenant)
        self.fold: Fold | None = None
        self.watchers: set[asyncio.Event] = set()
        self._waking: asyncio.Task[None] | None = None
        self._is_wake_owed = False
        self._newest_seen = 0
        self._following = asyncio.Lock()
        self.tail = Tail()
        self.pins = 0
        self.checkpoint_version = 0
        self._journal: list[Passed] | None = None
        self._is_spoilt = False
        self._is_doubtful = False
        self._opened: Opened | None = None
        self._opening: asyncio.Lock = asyncio.Lock()
        self._ahead = self.head
        self._queue: deque[Write] = deque()
        self._flying: deque[tuple[Write, Decided]] = deque()
        self._generation = 0
        self._busy: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether the lane can be forgotten without anybody noticing."""
        return not (self.pins or self._queue or self._flying or self.watchers or self._busy)

    @property
    def size_bytes(self) -> int:
        """About what the lane costs in memory."""
        of_head = 3_000 + 300 * len(self.head.requests) + 100 * len(self.head.runs)
        return of_head + (self.fold.size_bytes if self.fold else 0)

    def require_free(self) -> None:
        """Raise SessionExistsError if the id is taken by a session that the caller does not see."""

    # Reading

    async def refresh(self, min_next_seq: int | None = None) -> Session:
        """Return the committed head, which has every write acknowledged before the call.

        With `min_next_seq` a head that is as far is taken without a look at the store.
        """
        await self.opened()
        if self._is_alone:
            return self.head
        if min_next_seq is None or self.head.next_seq < min_next_seq:
            await self._catch_up()
        return self.head

    async def current_fold(
        self, min_next_seq: int | None = None, for_messages: bool = False
    ) -> Fold:
        """Return the fold at the committed head, as `refresh` does. Not to be changed.

        `for_messages` keeps the messages of rows that are read for it: they are asked for next.
        """
        await self.refresh(min_next_seq)
        self.services.on_fold_wanted(self.fold is not None)
        if self.fold is None:
            async with self._opening:
                if self.fold is None:
                    await self._load_fold(for_messages)
        assert self.fold is not None
        return self.fold

    async def fold_at(self, head: Session, seq: int) -> Fold:
        """Return the fold after a seq of a head that this lane had. Not to be changed.

        Raises EventCorruptError, and HistoryDroppedError where it needs a dropped event.
        """
        if seq == head.next_seq - 1:
            fold = await self.current_fold(head.next_seq)
            # The lane may have gone on since, by writes of this process or of others.
            if self.head.version == head.version:
                return fold.sound()
        return await self.services.readers.run(self.services.history.fold_at, head, seq)

    async def _load_fold(self, for_messages: bool) -> None:
        """Make the fold from the store, and let it take in what was stored meanwhile."""
        services = self.services
        while self.fold is None:
            journal: list[Passed] = []
            self._journal = journal
            opened = self._opened
            if opened is None:
                opened = await services.readers.run(services.history.open, self.id, self.tenant)
                self._adopt(opened)
            bodies: dict[RowRef, bytes] | None = {} if for_messages else None
            fold = await services.readers.run(services.history.fold, opened, bodies)
            await self._keep_bodies(bodies or {})
            if any(event.rewind_to is not None for event in journal):
                self._opened = None
                continue
            for event in journal:
                if event.seq >= fold.next_seq:
                    fold.take(event)
            self._opened = None
            # A restore writes beside the committer: its events are in no journal.
            if fold.next_seq == self.head.next_seq:
                self.fold, self._journal = fold, None

    async def _keep_bodies(self, bodies: dict[RowRef, bytes]) -> None:
        for number, (ref, encoded) in enumerate(bodies.items(), 1):
            if self.head.is_erased:  # meanwhile
                return
            self.services.bodies.keep(ref, encoded)
            if number % KEPT_AT_ONCE == 0:
                await asyncio.sleep(0)

    async def opened(self) -> None:
        """Read the session from the store if this process does not know it."""
        if self.head.exists:
            return
        async with self._opening:
            if not self.head.exists:
                services = self.services
                opened = await services.readers.run(services.history.open, self.id, self.tenant)
                self._adopt(opened)
                if not self.head.exists:
                    self.fold = Fold()

    def _adopt(self, opened: Opened) -> None:
        """Take over a session just read, unless the lane is further already."""
        if opened.head.version < self.head.version:
            return
        self._opened = opened
        if opened.head.version > self.head.version:
            self.head = opened.head.copy()
            self.fold = None
            self.tail.clear()
        if opened.base is not None:
            self.checkpoint_version = opened.head.version - len(opened.tail)

    async def _catch_up(self) -> None:
        """Apply rows that other processes wrote."""
        services = self.services
        head = self.head.copy()
        events = await services.readers.run(services.history.follow, head)
        if head.version <= self.head.version:
            return
        if not self.head.exists:
            self.fold = None
        self._take([event for event in events if event.seq >= self.head.next_seq])
        self.head, self._opened = head, None
        self.tail.clear()
        self.wake()

    def _take(self, events: Sequence[Passed], target: Fold | None = None) -> None:
        """Let the fold, or the one being made, take in events that are stored now."""
        if self._journal is not None:
            self._journal.extend(events)
        for event in events:
            if self.fold is None:
                return
            if event.rewind_to is None:
                self.fold.take(event)
            elif target is not None:
                self.fold.go_back(event, target)
            else:
                self.fold = None

    def forget(self) -> None:
        """Forget what was said in a session that is erased."""
        self.fold = self._journal = self._opened = None
        self.tail.clear()

    def wake(self) -> None:
        """Wake those who watch the session: many of them by turns, so that calls come between."""
        if len(self.watchers) <= WOKEN_AT_ONCE:
            for watcher in self.watchers:
                watcher.set()
            return
        self._is_wake_owed = True
        if self._waking is None:
            self._waking = asyncio.get_running_loop().create_task(self._wake_by_turns())

    def note_stored_elsewhere(self, version: int) -> None:
        """Take note of a row that is not in the head, and wake those who watch."""
        self._newest_seen = max(self._newest_seen, version)
        self.wake()

    async def follow(self) -> None:
        """Take over the rows that were noted: with one look for all who ask."""
        async with self._following:
            if self.head.version < self._newest_seen:
                await self._catch_up()

    async def _wake_by_turns(self) -> None:
        try:
            while self._is_wake_owed:
                await asyncio.sleep(ANSWERED_S)
                self._is_wake_owed = False
                for number, watcher in enumerate(list(self.watchers), 1):
                    watcher.set()
                    if number % WOKEN_AT_ONCE == 0:
                        await asyncio.sleep(0)
        finally:
            self._waking = None

    async def answered(self, request: RequestKey) -> Answered | None:
        """Return where a request was answered, if it was.

        Raises RequestIdReusedError if it was another.
        """
        found = self.head.requests.get(request.key) or await self._find(request.key)
        if found is not None and found.digest != request.digest:
            raise RequestIdReusedError(request_id=request.request_id)
        return found

    def supersede(self, head: Session) -> None:
        """Take over a head that was moved past rows written beside the committer.

        A reader may have seen those rows, and later ones, already: a head never goes back.
        """
        if head.version <= self.head.version:
            return
        self.head, self.fold, self._opened = head, None, None
        self.tail.clear()
        self.wake()

    # Writing

    async def write(self, write: Write) -> Any:
        """Decide a write in its turn and return its answer once it is durable.

        Cancelling the caller does not undo the write.
        """
        await self.opened()
        self.enqueue(write)
        return await write.done

    def enqueue(self, write: Write) -> None:
        """Take a write in its turn; the lane is open. Its answer comes as `write.done`."""
        if self.is_reserved and not write.is_own:
            write.fail(
                PermissionDeniedError(
                    action=f"writing to {AUDIT_SESSION}", needs="the service itself"
                )
            )
            return
        self._queue.append(write)
        self._pump()

    def _pump(self) -> None:
        """Decide what can be decided now."""
        while self._queue and self._busy is None:
            if self._is_doubtful:
                self._start(self._settle())
                return
            write = self._queue[0]
            if self._is_spoilt and self._flying:
                return
            if not self._flying and (self._is_spoilt or self._ahead.version != self.head.version):
                self._ahead, self._is_spoilt = self.head.copy(), False
            waits = write.attempts or write.is_confirmed or write.is_heavy
            if write.prepare is not None or waits:
                if self._flying:
                    return
                if not write.is_prepared:
                    self._start(self._prepare(write))
                    return
            self._queue.popleft()
            if not self._decide(write):
                return

    def _decide(self, write: Write) -> bool:
        """Decide one write. Returns False if the lane has to wait before it goes on."""
        if self._ahead is self.head:
            self._ahead = self.head.copy()
        answered = self._ahead.requests.get(write.request.key)
        if answered is not None:
            self._queue.appendleft(write)
            if not self._flying:
                self._start(self._confirm(write))
            else:
                write.is_confirmed = write.is_prepared = True
            return False
        if write.is_heavy:
            self._start(self._decide_aside(write))
            return False
        try:
            decided, rows = self._decided(write, self._ahead)
            decided.cost = self._charge(write, decided, rows)
        except FoldlogError as error:
            return self._refuse(write, error)
        except Exception as error:
            self._is_spoilt = True
            write.fail(error)
            return True
        if not rows and self._flying:
            # There is nothing to do since a write before it does it: first that is to be stored.
            self._put_back(write)
            return False
        self._launch(write, decided, rows)
        return True

    def _charge(
        self, write: Write, decided: Decided, rows: Sequence[SessionStoredEvent]
    ) -> Cost | None:
        """Take room for rows that were decided. What ends things, or is the service's own, is not
        refused. Raises QuotaExceededError.
        """
        made = [e for e in decided.events if isinstance(e, Session.Created | Session.Forked)]
        sessions = 0 if self.is_reserved else len(made)
        grows = sessions > 0 or any(each.TOPIC == Session.Event.TOPIC for each in decided.events)
        size_bytes = sum(len(row.state) for row in rows)
        may_refuse = grows and not write.is_own
        try:
            return self.services.meter.charge(sessions, size_bytes, may_refuse=may_refuse)
        except QuotaExceededError:
            self._is_spoilt = True  # the head has moved for nothing
            raise

    def _decided(self, write: Write, head: Session) -> tuple[Decided, list[SessionStoredEvent]]:
        decided = write.decide(head, write.context)
        return decided, [
            stored_row(event, self.tenant, self.services.pack) for event in decided.events
        ]

    async def _decide_aside(self, write: Write) -> None:
        """Decide a heavy write on a thread, and nothing else of the lane meanwhile.

        If other processes move the head in the meantime, the commit fails and all begins again.
        """
        workers, ahead = self.services.workers, self._ahead
        try:
            decided, rows = await workers.run(write.weight_bytes, self._decided, write, ahead)
            decided.cost = self._charge(write, decided, rows)
        except FoldlogError as error:
            if write.is_confirmed:
                write.fail(error)
                return
            self._put_back(write)
            await self._confirm(write)
        except Exception as error:
            self._is_spoilt = True
            write.fail(error)
        else:
            self._launch(write, decided, rows)

    def _refuse(self, write: Write, error: FoldlogError) -> bool:
        """Judge a refusal: what was refused on a head that may be wrong is asked again."""
        if not self._flying and write.is_confirmed:
            write.fail(error)
            return True
        self._put_back(write)
        if not self._flying:
            self._start(self._confirm(write))
        return False

    def _put_back(self, write: Write) -> None:
        """Let a write be decided once more, when the ones before it are stored or failed."""
        self._queue.appendleft(write)
        write.is_prepared = write.prepare is None
        write.attempts += bool(self._flying)

    def _launch(self, write: Write, decided: Decided, rows: Sequence[SessionStoredEvent]) -> None:
        if not rows:
            write.succeed(decided.answer)
            return
        generation = self._generation
        self._flying.append((write, decided))
        self.services.committer.submit(
            Commit(
                rows=rows,
                is_wanted=lambda: self._generation == generation,
                on_stored=self._on_stored,
                on_failed=self._on_failed,
            )
        )

    def _on_stored(self, notification_id: int) -> None:
        write, decided = self._flying.popleft()
        self.services.meter.stored(decided.cost, notification_id)
        self._publish(decided)
        self.services.on_stored(self, decided.events, notification_id)
        write.succeed(decided.answer)
        self._pump()

    def _publish(self, decided: Decided) -> None:
        """Move the committed head and fold past rows that are now stored."""
        known, version = self.head.next_seq, self.head.version
        for event in decided.events:
            if event.originator_version == self.head.version + 1:
                event.mutate(self.head)
                self._keep(event)
        if self.head.version == version:
            return  # read back from the store already
        self._opened = None
        if isinstance(decided.events[0], Session.Forked):
            self.fold = None
        self._take([e for e in decided.passed if e.seq >= known], decided.target)
        self.wake()

    def _keep(self, event: Session.Event) -> None:
        """Keep a row for those who watch, who are to see a header whole, as the reader gives it."""
        if self.watchers and not event.envelope.HasField("header_texts"):
            self.tail.keep(TailRow(event.originator_version, event.TOPIC, event.envelope))
        else:
            self.tail.clear()

    def _on_failed(self, error: Exception) -> None:
        """Put everything decided on the failed commit back, and begin again from the store."""
        self._generation += 1
        # The head that ran ahead may stand at the very version that another process reached.
        self._is_spoilt = True
        self._is_doubtful |= is_unanswered(error)
        for write, decided in reversed(self._flying):
            self.services.meter.release(decided.cost)
            write.attempts += 1
            write.is_prepared = False
            self._queue.appendleft(write)
        self._flying.clear()
        if self._busy is None:
            self._start(self._recover(error))

    def _start(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._busy = asyncio.get_running_loop().create_task(self._supervise(coroutine))

    async def _supervise(self, coroutine: Coroutine[Any, Any, object]) -> None:
        try:
            await coroutine
        except Exception as error:
            self._fail_first(error)
        finally:
            self._busy = None
            self._pump()

    def _fail_first(self, error: Exception) -> None:
        if self._queue:
            self._queue.popleft().fail(error)

    async def _prepare(self, write: Write) -> None:
        """Bring what a write needs beforehand; a write that failed before may be stored already."""
        if write.attempts and await self._replayed(write):
            return
        if write.prepare is not None:
            try:
                write.context = await write.prepare(self)
            except FoldlogError as error:
                self._is_doubtful |= is_unanswered(error)
                await self._require_ended()
                if not await self._replayed(write):
                    raise
                return
        write.is_prepared = True

    async def _confirm(self, write: Write) -> None:
        """Look for the write's request in the store, and see what other processes wrote."""
        if await self._replayed(write):
            return
        if not self._is_alone:
            await self._catch_up()
        write.is_confirmed, self._is_spoilt = True, True

    async def _recover(self, error: Exception) -> None:
        """After a failed commit: see what the store has, then go on.

        A store that is away fails all.
        """
        if not await self._settle():
            return
        if isinstance(error, IntegrityError):
            self._give_up()
            return
        # From now on the fate of the commit is known: what is stored is answered, the rest failed.
        for write in [write for write in self._queue if write.attempts]:
            if not await self._replayed(write):
                self._queue.remove(write)
                write.fail(error)

    async def _settle(self) -> bool:
        """See what the store has, once no commit without an answer may still change it.

        Where that cannot be known now, fails all, and returns False.
        """
        try:
            await self._require_ended()
            await self._catch_up()
        except FoldlogError as error:
            self._fail_all(error)
            return False
        self._is_spoilt = True
        return True

    async def _require_ended(self) -> None:
        """Raise StoreUnavailableError while a commit without an answer is under way.

        It was decided on the committed head, or on one before it.
        """
        if not self._is_doubtful:
            return
        services = self.services
        place = SessionStoredEvent(self.id, self.head.version + 1, "", b"", self.tenant)
        if await services.readers.run(services.store.recorder.is_held, place):
            raise StoreUnavailableError(cause="an earlier write of the session has not ended")
        self._is_doubtful = False

    def _fail_all(self, error: FoldlogError) -> None:
        is_shed = isinstance(error, OverloadedError)
        unknown = StoreUnavailableError(cause=str(error)) if is_shed else error
        while self._queue:
            write = self._queue.popleft()
            write.fail(unknown if write.attempts else error)

    def _give_up(self) -> None:
        while self._queue and self._queue[0].attempts > MAX_ATTEMPTS:
            self._queue.popleft().fail(OverloadedError(cause="too many writers on one session"))

    async def _replayed(self, write: Write) -> bool:
        """Answer a write whose request is stored already. Returns whether it was."""
        try:
            answered = await self.answered(write.request)
        except RequestIdReusedError as error:
            self._queue.remove(write)
            write.fail(error)
            return True
        if answered is None:
            return False
        self._queue.remove(write)
        try:
            write.succeed(await write.replay(self, answered))
        except Exception as error:
            write.fail(error)
        return True

    async def _find(self, key: bytes) -> Answered | None:
        services = self.services
        row = await services.readers.run(services.store.recorder.find_request, self.id, key)
        if row is None:
            return None
        envelope = Envelope.FromString(row.state)
        return Answered(row.originator_version, envelope.row_count or 1, envelope.request_digest)


class AbsentLane(Lane):
    """The lane of a session that is hidden from its caller: blank, and it stays so."""

    is_hidden = True

    def __init__(self, lane: Lane, session_id: str) -> None:
        super().__init__(lane.services, lane.id, lane.tenant)
        self.fold = Fold()
        self._session_id = session_id

    def require_free(self) -> None:
        """Raise SessionExistsError: an id is the tenant's, whoever sees its session."""
        raise SessionExistsError(session_id=self._session_id)

    async def opened(self) -> None:
        """Do nothing: there is nothing to read."""

    async def _catch_up(self) -> None:
        pass

    async def _find(self, key: bytes) -> Answered | None:
        return None

    def _launch(self, write: Write, decided: Decided, rows: Sequence[SessionStoredEvent]) -> None:
        self._is_spoilt = True
        write.fail(SessionExistsError(session_id=self._session_id))
