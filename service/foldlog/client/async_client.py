"""The asyncio client."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from foldlog.client.async_append_stream import AsyncAppendStream
from foldlog.client.awaiting import AsyncWire, awaiting, iterating
from foldlog.client.operations import (
    anchoring,
    appending,
    attachments,
    changing,
    checking,
    files,
    reading,
    recovering,
    requests,
    sessions,
    watching,
)
from foldlog.client.state import ClientState, SessionState


class AsyncSession(SessionState):
    """A session, as an object. Tasks may share it; writes apply in the order they arrive."""

    client: AsyncClient

    append = awaiting(appending.append)
    try_append = awaiting(appending.try_append)
    seed = awaiting(appending.seed)
    restore = awaiting(changing.restore)
    fork = awaiting(changing.fork)
    rewind = awaiting(changing.rewind)
    snapshot = awaiting(changing.snapshot)
    update = awaiting(changing.update)
    delete = awaiting(changing.delete)
    erase = awaiting(changing.erase)
    open_writer = awaiting(changing.open_writer)
    close_writer = awaiting(changing.close_writer)
    info = awaiting(reading.info)
    messages = awaiting(reading.messages)
    header = awaiting(reading.header)
    events = iterating(reading.events)
    lineage = awaiting(reading.lineage)
    diff = awaiting(reading.diff)
    verify = awaiting(reading.verify)
    check = awaiting(checking.check)
    plan_recovery = awaiting(recovering.plan_recovery)
    recover = awaiting(recovering.recover)
    suggest_range = awaiting(recovering.suggest_range)
    record_header = awaiting(requests.record_header)
    begin_step = awaiting(requests.begin_step)
    build_request = awaiting(requests.build_request)
    record_request = awaiting(requests.record_request)
    record_one_shot = awaiting(requests.record_one_shot)
    verify_requests = awaiting(requests.verify_requests)
    explain = awaiting(requests.explain)
    cache_breaks = iterating(requests.cache_breaks)
    watch = iterating(watching.watch)
    export = awaiting(files.export)


class AsyncClient(ClientState[AsyncSession]):
    """A connection to the service, for one event loop: as Client, with await."""

    session_kind = AsyncSession
    wire: AsyncWire
    wire_kind = AsyncWire

    create = awaiting(sessions.create)
    get = awaiting(sessions.get)
    restore = awaiting(recovering.restore)
    unresolved_calls = iterating(recovering.unresolved_calls)
    list = iterating(sessions.list_sessions)
    watch_all = iterating(watching.watch_all)
    heads = iterating(anchoring.heads)
    signing_key = awaiting(anchoring.signing_key)
    import_session = awaiting(files.import_session)
    put_attachment = awaiting(attachments.put_attachment)
    get_attachment = awaiting(attachments.get_attachment)
    read_attachment = awaiting(attachments.read_attachment)
    find_attachments = awaiting(attachments.find_attachments)
    collect_attachments = awaiting(attachments.collect_attachments)

    def stream(
        self, max_in_flight: int = 256, *, max_outage_s: float | None = None
    ) -> AsyncAppendStream:
        """Return a stream of appends, with at most so many batches unanswered.

        To be used as an asynchronous context manager. An outage longer than max_outage_s fails
        what is unanswered; None means the client's timeout.
        """
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
