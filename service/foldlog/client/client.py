"""The blocking client."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from foldlog.client import operations
from foldlog.client.blocking import Wire, blocking, iterating
from foldlog.client.state import ClientState, SessionState

if TYPE_CHECKING:
    from foldlog.client.append_stream import AppendStream


class Session(SessionState):
    """A session, as an object. Threads may share it; writes apply in the order they arrive."""

    client: Client

    append = blocking(lambda: operations.appending.append)
    try_append = blocking(lambda: operations.appending.try_append)
    seed = blocking(lambda: operations.appending.seed)
    restore = blocking(lambda: operations.changing.restore)
    fork = blocking(lambda: operations.changing.fork)
    rewind = blocking(lambda: operations.changing.rewind)
    snapshot = blocking(lambda: operations.changing.snapshot)
    update = blocking(lambda: operations.changing.update)
    delete = blocking(lambda: operations.changing.delete)
    erase = blocking(lambda: operations.changing.erase)
    open_writer = blocking(lambda: operations.changing.open_writer)
    close_writer = blocking(lambda: operations.changing.close_writer)
    info = blocking(lambda: operations.reading.info)
    messages = blocking(lambda: operations.reading.messages)
    header = blocking(lambda: operations.reading.header)
    events = iterating(lambda: operations.reading.events)
    lineage = blocking(lambda: operations.reading.lineage)
    diff = blocking(lambda: operations.reading.diff)
    verify = blocking(lambda: operations.reading.verify)
    check = blocking(lambda: operations.checking.check)
    plan_recovery = blocking(lambda: operations.recovering.plan_recovery)
    recover = blocking(lambda: operations.recovering.recover)
    suggest_range = blocking(lambda: operations.recovering.suggest_range)
    record_header = blocking(lambda: operations.requests.record_header)
    begin_step = blocking(lambda: operations.requests.begin_step)
    build_request = blocking(lambda: operations.requests.build_request)
    record_request = blocking(lambda: operations.requests.record_request)
    record_one_shot = blocking(lambda: operations.requests.record_one_shot)
    verify_requests = blocking(lambda: operations.requests.verify_requests)
    explain = blocking(lambda: operations.requests.explain)
    cache_breaks = iterating(lambda: operations.requests.cache_breaks)
    watch = iterating(lambda: operations.watching.watch)
    export = blocking(lambda: operations.files.export)


class Client(ClientState[Session]):
    """A connection to the service. Without an address: FOLDLOG_ADDRESS, else 127.0.0.1:50551.

    `api_key` says who calls; None means what FOLDLOG_API_KEY holds, if anything.
    In plaintext unless `tls`, or FOLDLOG_TLS and its kind, say how it is encrypted.

    Every call has a timeout, within which lost connections and refusals that pass are tried again
    under one request id. `retry=None` turns that off. Threads may share it.
    """

    session_kind = Session
    wire: Wire
    wire_kind = Wire

    create = blocking(lambda: operations.sessions.create)
    get = blocking(lambda: operations.sessions.get)
    restore = blocking(lambda: operations.recovering.restore)
    unresolved_calls = iterating(lambda: operations.recovering.unresolved_calls)
    list = iterating(lambda: operations.sessions.list_sessions)
    watch_all = iterating(lambda: operations.watching.watch_all)
    heads = iterating(lambda: operations.anchoring.heads)
    signing_key = blocking(lambda: operations.anchoring.signing_key)
    import_session = blocking(lambda: operations.files.import_session)
    put_attachment = blocking(lambda: operations.attachments.put_attachment)
    get_attachment = blocking(lambda: operations.attachments.get_attachment)
    read_attachment = blocking(lambda: operations.attachments.read_attachment)
    find_attachments = blocking(lambda: operations.attachments.find_attachments)
    collect_attachments = blocking(lambda: operations.attachments.collect_attachments)

    def stream(
        self, max_in_flight: int = 256, *, max_outage_s: float | None = None
    ) -> AppendStream:
        """Return a stream of appends, with at most so many batches unanswered.

        To be used as a context manager. An outage longer than max_outage_s fails what is
        unanswered; None means the client's timeout.
        """
        from foldlog.client.append_stream import AppendStream

        return AppendStream(self, max_in_flight, max_outage_s)

    def close(self) -> None:
        """Close the connection. Calls that are under way, and iterators, fail."""
        self.wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
