"""The blocking client."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from foldlog.client.append_stream import AppendStream
from foldlog.client.blocking import Wire, blocking, iterating
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


class Session(SessionState):
    """A session, as an object. Threads may share it; writes apply in the order they arrive."""

    client: Client

    append = blocking(appending.append)
    try_append = blocking(appending.try_append)
    seed = blocking(appending.seed)
    restore = blocking(changing.restore)
    fork = blocking(changing.fork)
    rewind = blocking(changing.rewind)
    snapshot = blocking(changing.snapshot)
    update = blocking(changing.update)
    delete = blocking(changing.delete)
    erase = blocking(changing.erase)
    open_writer = blocking(changing.open_writer)
    close_writer = blocking(changing.close_writer)
    info = blocking(reading.info)
    messages = blocking(reading.messages)
    header = blocking(reading.header)
    events = iterating(reading.events)
    lineage = blocking(reading.lineage)
    diff = blocking(reading.diff)
    verify = blocking(reading.verify)
    check = blocking(checking.check)
    plan_recovery = blocking(recovering.plan_recovery)
    recover = blocking(recovering.recover)
    suggest_range = blocking(recovering.suggest_range)
    record_header = blocking(requests.record_header)
    begin_step = blocking(requests.begin_step)
    build_request = blocking(requests.build_request)
    record_request = blocking(requests.record_request)
    record_one_shot = blocking(requests.record_one_shot)
    verify_requests = blocking(requests.verify_requests)
    explain = blocking(requests.explain)
    cache_breaks = iterating(requests.cache_breaks)
    watch = iterating(watching.watch)
    export = blocking(files.export)


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

    create = blocking(sessions.create)
    get = blocking(sessions.get)
    restore = blocking(recovering.restore)
    unresolved_calls = iterating(recovering.unresolved_calls)
    list = iterating(sessions.list_sessions)
    watch_all = iterating(watching.watch_all)
    heads = iterating(anchoring.heads)
    signing_key = blocking(anchoring.signing_key)
    import_session = blocking(files.import_session)
    put_attachment = blocking(attachments.put_attachment)
    get_attachment = blocking(attachments.get_attachment)
    read_attachment = blocking(attachments.read_attachment)
    find_attachments = blocking(attachments.find_attachments)
    collect_attachments = blocking(attachments.collect_attachments)

    def stream(
        self, max_in_flight: int = 256, *, max_outage_s: float | None = None
    ) -> AppendStream:
        """Return a stream of appends, with at most so many batches unanswered.

        To be used as a context manager. An outage longer than max_outage_s fails what is
        unanswered; None means the client's timeout.
        """
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
