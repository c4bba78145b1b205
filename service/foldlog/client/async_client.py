"""The asyncio client."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from foldlog.client import operations
from foldlog.client.awaiting import AsyncWire, awaiting, iterating
from foldlog.client.state import ClientState, SessionState

if TYPE_CHECKING:
    from foldlog.client.async_append_stream import AsyncAppendStream


class AsyncSession(SessionState):
    """A session, as an object. Tasks may share it; writes apply in the order they arrive."""

    client: AsyncClient

    append = awaiting(lambda: operations.appending.append)
    try_append = awaiting(lambda: operations.appending.try_append)
    seed = awaiting(lambda: operations.appending.seed)
    restore = awaiting(lambda: operations.changing.restore)
    fork = awaiting(lambda: operations.changing.fork)
    rewind = awaiting(lambda: operations.changing.rewind)
    snapshot = awaiting(lambda: operations.changing.snapshot)
    update = awaiting(lambda: operations.changing.update)
    delete = awaiting(lambda: operations.changing.delete)
    erase = awaiting(lambda: operations.changing.erase)
    open_writer = awaiting(lambda: operations.changing.open_writer)
    close_writer = awaiting(lambda: operations.changing.close_writer)
    info = awaiting(lambda: operations.reading.info)
    messages = awaiting(lambda: operations.reading.messages)
    header = awaiting(lambda: operations.reading.header)
    events = iterating(lambda: operations.reading.events)
    lineage = awaiting(lambda: operations.reading.lineage)
    diff = awaiting(lambda: operations.reading.diff)
    verify = awaiting(lambda: operations.reading.verify)
    check = awaiting(lambda: operations.checking.check)
    plan_recovery = awaiting(lambda: operations.recovering.plan_recovery)
    recover = awaiting(lambda: operations.recovering.recover)
    suggest_range = awaiting(lambda: operations.recovering.suggest_range)
    record_header = awaiting(lambda: operations.requests.record_header)
    begin_step = awaiting(lambda: operations.requests.begin_step)
    build_request = awaiting(lambda: operations.requests.build_request)
    record_request = awaiting(lambda: operations.requests.record_request)
    record_one_shot = awaiting(lambda: operations.requests.record_one_shot)
    verify_requests = awaiting(lambda: operations.requests.verify_requests)
    explain = awaiting(lambda: operations.requests.explain)
    cache_breaks = iterating(lambda: operations.requests.cache_breaks)
    watch = iterating(lambda: operations.watching.watch)
    export = awaiting(lambda: operations.files.export)


class AsyncClient(ClientState[AsyncSession]):
    """A connection to the service, for one event loop: as Client, with await."""

    session_kind = AsyncSession
    wire: AsyncWire
    wire_kind = AsyncWire

    create = awaiting(lambda: operations.sessions.create)
    get = awaiting(lambda: operations.sessions.get)
    restore = awaiting(lambda: operations.recovering.restore)
    unresolved_calls = iterating(lambda: operations.recovering.unresolved_calls)
    list = iterating(lambda: operations.sessions.list_sessions)
    watch_all = iterating(lambda: operations.watching.watch_all)
    heads = iterating(lambda: operations.anchoring.heads)
    signing_key = awaiting(lambda: operations.anchoring.signing_key)
    import_session = awaiting(lambda: operations.files.import_session)
    put_attachment = awaiting(lambda: operations.attachments.put_attachment)
    get_attachment = awaiting(lambda: operations.attachments.get_attachment)
    read_attachment = awaiting(lambda: operations.attachments.read_attachment)
    find_attachments = awaiting(lambda: operations.attachments.find_attachments)
    collect_attachments = awaiting(lambda: operations.attachments.collect_attachments)

    def stream(
        self, max_in_flight: int = 256, *, max_outage_s: float | None = None
    ) -> AsyncAppendStream:
        """Return a stream of appends, with at most so many batches unanswered.

        To be used as an asynchronous context manager. An outage longer than max_outage_s fails
        what is unanswered; None means the client's timeout.
        """
        from foldlog.client.async_append_stream import AsyncAppendStream

        return AsyncAppendStream(self, max_in_flight, max_outage_s)

    async def close(self) -> None:
        """Close the connection. Calls that are under way, and iterators, fail."""
        await self.wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
