"""EraseSession: what was said in a session is destroyed, and that it was there stays evident.

A fact says that the erasure begins: from then on the session is not forked. If no fork reads its
rows, a second fact says that it is erased, and then all that it held goes, row by row; what a crash
leaves is taken up again, since the index has who is being erased.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from google.protobuf.message import DecodeError

from foldlog import observability
from foldlog.application import decisions
from foldlog.application.bodies import Bodies
from foldlog.application.collecting import Collecting, References, Released
from foldlog.application.domain import Answered, Session
from foldlog.application.feed import Feed
from foldlog.application.incoming import require_size
from foldlog.application.lane import Decided, Lane, Services, Write
from foldlog.application.lanes import Lanes
from foldlog.application.rows import PAGE, RowReader
from foldlog.application.writing import Writing
from foldlog.core.errors import (
    EventCorruptError,
    FoldlogError,
    HasForksError,
    PermissionDeniedError,
)
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact

REASON_BYTES = 256


@dataclass(slots=True)
class Erased:
    """What an erasure destroyed: sessions, forks before what they were forked from."""

    next_seq: int = 0
    session_ids: list[str] = field(default_factory=list)
    attachment_count: int = 0
    pending_count: int = 0


class Erasing:
    """Erases a tenant's sessions."""

    def __init__(
        self,
        services: Services,
        lanes: Lanes,
        feed: Feed,
        bodies: Bodies,
        writing: Writing,
        collecting: Collecting,
        references: References,
        reader: RowReader,
        tenant: str,
    ) -> None:
        self._services = services
        self._lanes = lanes
        self._feed = feed
        self._bodies = bodies
        self._writing = writing
        self._collecting = collecting
        self._references = references
        self._reader = reader
        self._tenant = tenant

    async def erase(
        self, session_id: str, request_id: str, include_forks: bool, reason: str
    ) -> Erased:
        """Erase a session. Raises HasForksError if forks read it and are not included."""
        require_size("reason", len(reason.encode()), REASON_BYTES)
        erased = Erased()
        await self._erase(session_id, request_id, include_forks, reason, erased)
        return erased

    async def resume(self, session_id: str) -> None:
        """Go on with an erasure that a crash interrupted; one that forks hinder is given up."""
        try:
            await self._finish(session_id, False, "", Erased())
        except HasForksError:
            observability.log("erasure.withdrawn", level="warning", session=session_id)

    async def _erase(
        self, session_id: str, request_id: str, include_forks: bool, reason: str, erased: Erased
    ) -> None:
        request = self._writing.request(
            request_id, b"erase", str(include_forks).encode(), reason.encode()
        )

        def decide(head: Session, _: object) -> Decided:
            return decisions.begin_erasure(head, self._writing.call(request), session_id, reason)

        head = await self._write(session_id, Write(request, decide, _nothing))
        if request_id and not (head.is_erasing or head.is_erased):
            # The first attempt under this id was given up since forks read the session.
            await self._erase(session_id, "", include_forks, reason, erased)
            return
        await self._finish(session_id, include_forks, reason, erased)

    async def _write(self, session_id: str, write: Write) -> Session:
        async with self._lanes.use(self._tenant, session_id) as lane:
            if lane.is_reserved:
                raise PermissionDeniedError(
                    action=f"erasing {session_id}", needs="the service itself"
                )
            await lane.write(write)
            return (await lane.refresh()).copy()

    async def _finish(
        self, session_id: str, include_forks: bool, reason: str, erased: Erased
    ) -> None:
        """Erase a session whose erasure has begun."""
        async with self._lanes.use(self._tenant, session_id) as lane:
            head = await lane.refresh()
            if not head.is_erased:
                await self._free_of_forks(lane, session_id, include_forks, reason, erased)
                head = await self._say_erased(session_id, reason)
            erased.next_seq = head.next_seq
            await self._purge(lane, session_id, erased)
        erased.session_ids.append(session_id)

    async def _free_of_forks(
        self, lane: Lane, session_id: str, include_forks: bool, reason: str, erased: Erased
    ) -> None:
        """Erase the forks that read a session's rows, or give its erasure up.

        A fork that is made meanwhile looks at its parent once it is there, and undoes itself.
        """
        while forks := await self._forks(lane.id):
            if not include_forks:
                await self._withdraw(lane, session_id)
                raise _has_forks(forks)
            for fork in forks:
                if fork not in erased.session_ids:
                    await self._erase(fork, "", True, reason, erased)

    async def _forks(self, aggregate_id: UUID) -> list[str]:
        await self._feed.settled()
        index = self._services.store.index
        found = await self._services.readers.run(index.forks_reading, aggregate_id)
        return [session_id for _, session_id, _ in found]

    async def _withdraw(self, lane: Lane, session_id: str) -> None:
        request = self._writing.request("", b"withdraw")

        def decide(head: Session, _: object) -> Decided:
            return decisions.withdraw_erasure(head, self._writing.call(request))

        await self._write(session_id, Write(request, decide, _nothing))
        await self._services.readers.run(self._services.store.erasures.end, lane.id)

    async def _say_erased(self, session_id: str, reason: str) -> Session:
        request = self._writing.request("", b"erased")

        def decide(head: Session, _: object) -> Decided:
            return decisions.erase(head, self._writing.call(request), session_id, reason)

        head = await self._write(session_id, Write(request, decide, _nothing))
        if not head.is_erased:  # another process gave it up
            raise _has_forks(())
        return head

    async def _purge(self, lane: Lane, session_id: str, erased: Erased) -> None:
        """Destroy what an erased session held. Done again, it does the same."""
        run, store = self._services.readers.run, self._services.store
        await self._feed.settled()
        await self._note_references()
        await run(self._strip, lane.id, session_id)
        lane.forget()
        self._bodies.forget_session(lane.id)
        released = await run(self._collecting.release, lane.id)
        self._reader.texts.forget([each.sha256 for each in released.found])
        if not released.wait_ns:
            erased.attachment_count += await run(self._collecting.remove, released)
        elif released.found or released.gone:
            erased.pending_count += len(released.found)
            self._lanes.pool.later(released.wait_ns / 1e9, partial(self._remove, released))
        # Last: until the attachments are gone, the references tell which they are after a crash.
        await run(store.objects.table.forget_references, lane.id)
        await run(store.erasures.end, lane.id)
        await run(store.recorder.let_go)

    async def _note_references(self) -> None:
        """Note who names which attachments, before the rows that say so are gone."""
        try:
            await self._services.readers.run(self._references.follow)
        except EventCorruptError as error:
            # Until the damage is mended no attachment is collected, and these are none more.
            observability.log("erasure.attachments_kept", level="error", error=error)

    def _strip(self, aggregate_id: UUID, session_id: str) -> None:
        """Destroy the body of every row but the one that says so, and the key.

        The key goes last: with it a session can be opened that a crash left half stripped.
        """
        store, after = self._services.store, 0
        # The first one first: from then on the rows are held to nothing that they lack.
        while page := self._reader.page(aggregate_id, after, limit=PAGE if after else 1):
            states = [
                (row.originator_version, stripped(row.state, row.originator_version, session_id))
                for row in page
                if row.topic != Session.Erased.TOPIC
            ]
            store.recorder.replace_states(aggregate_id, states)
            before = sum(len(row.state) for row in page if row.topic != Session.Erased.TOPIC)
            self._services.meter.freed(before - sum(len(state) for _, state in states))
            after = page[-1].originator_version
        store.checkpoints.delete(aggregate_id)
        store.data_keys.delete(aggregate_id)
        self._reader.forget(aggregate_id)

    async def _remove(self, released: Released) -> None:
        """Delete attachments, now that no write under way can name them any more.

        Should the process end before, a collection deletes them.
        """
        try:
            await self._feed.settled()
            await self._services.readers.run(self._references.follow)
            await self._services.readers.run(self._collecting.remove, released)
            await self._services.readers.run(self._services.store.recorder.let_go)
        except FoldlogError as error:
            observability.log("erasure.attachments_kept", level="warning", error=error)


def stripped(state: bytes, version: int, session_id: str) -> bytes:
    """Return a row's state without its body; what the chain goes over stays.

    The first row keeps its lineage, for the chain's sake, and the session's id.
    """
    try:
        envelope = Envelope.FromString(state)
    except DecodeError:
        envelope = Envelope()
    if version == 1:
        envelope.session_id = session_id
        if envelope.body:
            named = StoredFact.FromString(envelope.body).origin.segments
            for segment in named if not envelope.lineage else ():
                segment.ClearField("session_id")
                envelope.lineage.add().CopyFrom(segment)
    for name in ("body", "encrypted_body", "still_encrypted"):
        envelope.ClearField(name)
    envelope.dropped = True
    return envelope.SerializeToString()


def _has_forks(session_ids: Iterable[str]) -> HasForksError:
    ordered = tuple(sorted(session_ids))
    return HasForksError(
        f"forks read this session's rows: {', '.join(ordered)}", session_ids=ordered
    )


async def _nothing(_: Lane, __: Answered) -> None:
    """Replay a write whose answer is the head itself."""
