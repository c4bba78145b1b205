"""The RPCs: each decodes, calls one method of the application, and encodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from foldlog.application.decisions import Guard
from foldlog.application.incoming import require_size, time_of
from foldlog.application.tenant import Tenant
from foldlog.application.watching import CaughtUp
from foldlog.core.errors import InvalidFieldError
from foldlog.core.event import TYPE_OF_ROLE
from foldlog.internal.v1 import raw_pb2 as raw
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.index import IndexQuery, Instant
from foldlog.server import encoding
from foldlog.server.handlers import Rpc
from foldlog.server.stream import AppendStream, write_of
from foldlog.v1 import event_pb2, message_pb2, session_pb2
from foldlog.v1 import service_pb2 as pb

MAX_PAGE_SESSIONS = 1_000
MAX_PAGE_EVENTS = 1_000
DEFAULT_PAGE_SESSIONS = 50
DEFAULT_PAGE_EVENTS = 500


class Servicer:
    """SessionService over an application."""

    def __init__(self, tenant: Tenant, stopping: asyncio.Event) -> None:
        self._tenant = tenant
        self._stopping = stopping

    def rpcs(self) -> Mapping[str, Rpc]:
        """Return every RPC of the service by name."""
        return {
            "CreateSession": Rpc(self.create_session, pb.CreateSessionRequest),
            "GetSession": Rpc(self.get_session, pb.GetSessionRequest),
            "ListSessions": Rpc(self.list_sessions, pb.ListSessionsRequest),
            "UpdateSession": Rpc(self.update_session, pb.UpdateSessionRequest),
            "DeleteSession": Rpc(self.delete_session, pb.DeleteSessionRequest),
            "EraseSession": Rpc(self.erase_session, pb.EraseSessionRequest),
            "OpenWriter": Rpc(self.open_writer, pb.OpenWriterRequest),
            "CloseWriter": Rpc(self.close_writer, pb.CloseWriterRequest),
            "AppendEvents": Rpc(self.append_events, raw.RawAppendEventsRequest),
            "AppendStream": Rpc(
                self.append_stream, raw.RawAppendStreamRequest, True, True, judges_elements=True
            ),
            "RestoreEvents": Rpc(self.restore_events, raw.RawRestoreEventsRequest, True),
            "SeedSession": Rpc(self.seed_session, pb.SeedSessionRequest),
            "SnapshotSession": Rpc(self.snapshot_session, pb.SnapshotSessionRequest),
            "RewindSession": Rpc(self.rewind_session, pb.RewindSessionRequest),
            "ForkSession": Rpc(self.fork_session, pb.ForkSessionRequest),
            "GetLineage": Rpc(self.get_lineage, pb.GetLineageRequest),
            "DiffSessions": Rpc(self.diff_sessions, pb.DiffSessionsRequest, False, True),
            "ListEvents": Rpc(self.list_events, pb.ListEventsRequest),
            "WatchEvents": Rpc(
                self.watch_events, pb.WatchEventsRequest, False, True, is_endless=True
            ),
            "WatchAllEvents": Rpc(
                self.watch_all_events, pb.WatchAllEventsRequest, False, True, is_endless=True
            ),
            "GetMessages": Rpc(self.get_messages, pb.GetMessagesRequest, False, True),
            "GetRequestHeader": Rpc(self.get_request_header, pb.GetRequestHeaderRequest),
            "CheckRequest": Rpc(self.check_request, pb.CheckRequestRequest),
            "VerifySession": Rpc(self.verify_session, pb.VerifySessionRequest),
            "ExportSession": Rpc(self.export_session, pb.ExportSessionRequest, False, True),
            "ImportSession": Rpc(self.import_session, pb.ImportSessionRequest, True),
        }

    # Sessions

    async def create_session(self, request: pb.CreateSessionRequest) -> pb.CreateSessionResponse:
        """Create a session."""
        head = await self._tenant.writing.create(
            request.session_id, request.request_id, request.labels, request.metadata_json
        )
        return pb.CreateSessionResponse(session=encoding.session(head), next_seq=head.next_seq)

    async def get_session(self, request: pb.GetSessionRequest) -> pb.GetSessionResponse:
        """Read a session's state."""
        head = await self._tenant.reading.head(request.session_id)
        return pb.GetSessionResponse(session=encoding.session(head))

    async def list_sessions(self, request: pb.ListSessionsRequest) -> pb.ListSessionsResponse:
        """List a page of sessions."""
        page = await self._tenant.list_sessions(
            IndexQuery(
                page_size=page_size(request.page_size, DEFAULT_PAGE_SESSIONS, MAX_PAGE_SESSIONS),
                page_token=request.page_token,
                labels=dict(request.labels),
                parent_session_id=request.parent_session_id,
                created_from=_instant(request, "created_from_time"),
                created_before=_instant(request, "created_before_time"),
                updated_from=_instant(request, "updated_from_time"),
                custom_key=request.custom_key,
                custom_kind=request.custom_kind,
            )
        )
        sessions = [encoding.listed(row) for row in page.rows]
        return pb.ListSessionsResponse(sessions=sessions, next_page_token=page.next_page_token)

    async def update_session(self, request: pb.UpdateSessionRequest) -> pb.UpdateSessionResponse:
        """Change labels and metadata."""
        head = await self._tenant.writing.update(
            request.session_id,
            request.request_id,
            request.set_labels,
            request.remove_labels,
            request.metadata_json if request.HasField("metadata_json") else None,
        )
        return pb.UpdateSessionResponse(session=encoding.session(head), next_seq=head.next_seq)

    async def delete_session(self, request: pb.DeleteSessionRequest) -> pb.DeleteSessionResponse:
        """Delete a session."""
        next_seq = await self._tenant.writing.delete(request.session_id, request.request_id)
        return pb.DeleteSessionResponse(next_seq=next_seq)

    async def erase_session(self, request: pb.EraseSessionRequest) -> pb.EraseSessionResponse:
        """Erase a session."""
        erased = await self._tenant.erasing.erase(
            request.session_id, request.request_id, request.include_forks, request.reason
        )
        return pb.EraseSessionResponse(
            next_seq=erased.next_seq,
            erased_session_ids=erased.session_ids,
            erased_attachment_count=erased.attachment_count,
            pending_attachment_count=erased.pending_count,
        )

    async def open_writer(self, request: pb.OpenWriterRequest) -> pb.OpenWriterResponse:
        """Begin a writer epoch."""
        expected = request.expected_epoch if request.HasField("expected_epoch") else None
        epoch, next_seq = await self._tenant.writing.open_writer(
            request.session_id, request.request_id, expected, request.owner
        )
        return pb.OpenWriterResponse(writer_epoch=epoch, next_seq=next_seq)

    async def close_writer(self, request: pb.CloseWriterRequest) -> pb.CloseWriterResponse:
        """End a writer epoch."""
        next_seq = await self._tenant.writing.close_writer(
            request.session_id, request.request_id, request.writer_epoch
        )
        return pb.CloseWriterResponse(next_seq=next_seq)

    # Events

    async def append_events(self, request: raw.RawAppendEventsRequest) -> pb.AppendEventsResponse:
        """Append a batch."""
        write = await write_of(self._tenant, request)
        answer = await self._tenant.writing.write(request.session_id, write)
        return encoding.appended(answer)

    def append_stream(self, elements: AsyncIterator[Any]) -> AsyncIterator[pb.AppendStreamResponse]:
        """Append batches, many in flight."""
        return AppendStream(self._tenant, elements, self._stopping).answers()

    async def restore_events(
        self, elements: AsyncIterator[raw.RawRestoreEventsRequest]
    ) -> pb.RestoreEventsResponse:
        """Put events under their original seqs."""
        first = await anext(elements, raw.RawRestoreEventsRequest())
        if first.WhichOneof("kind") != "header":
            raise InvalidFieldError.of("header", "the first element is to be the header")
        header = first.header
        guard = Guard(
            header.expected_next_seq if header.HasField("expected_next_seq") else None,
            header.writer_epoch if header.HasField("writer_epoch") else None,
        )

        async def batches() -> AsyncIterator[Sequence[raw.RawEvent]]:
            async for element in elements:
                if element.WhichOneof("kind") != "batch":
                    raise InvalidFieldError.of("batch", "each later element is to be a batch")
                yield element.batch.events

        count, next_seq = await self._tenant.transfer.restore(
            header.session_id, header.request_id, guard, batches()
        )
        return pb.RestoreEventsResponse(count=count, next_seq=next_seq)

    async def seed_session(self, request: pb.SeedSessionRequest) -> pb.SeedSessionResponse:
        """Append a flat list of messages."""
        if not request.messages:
            raise InvalidFieldError.of("messages", "at least one message is required")
        require_size("messages", len(request.messages), self._tenant.settings.limits.batch_events)
        seeding = raw.RawAppendEventsRequest(
            session_id=request.session_id,
            request_id=request.request_id,
            events=[_seeded(m, f"messages[{i}]") for i, m in enumerate(request.messages)],
        )
        if request.HasField("expected_next_seq"):
            seeding.expected_next_seq = request.expected_next_seq
        if request.HasField("writer_epoch"):
            seeding.writer_epoch = request.writer_epoch
        try:
            answer = await self.append_events(seeding)
        except InvalidFieldError as error:
            raise _as_messages(error) from None
        return pb.SeedSessionResponse(first_seq=answer.first_seq, next_seq=answer.next_seq)

    async def snapshot_session(
        self, request: pb.SnapshotSessionRequest
    ) -> pb.SnapshotSessionResponse:
        """Drop history that no longer counts."""
        count, whole_from_seq, next_seq = await self._tenant.retention.snapshot(
            request.session_id, request.request_id
        )
        return pb.SnapshotSessionResponse(
            dropped_count=count, whole_from_seq=whole_from_seq, next_seq=next_seq
        )

    async def rewind_session(self, request: pb.RewindSessionRequest) -> pb.RewindSessionResponse:
        """Rewind."""
        guard = Guard(
            request.expected_next_seq if request.HasField("expected_next_seq") else None,
            request.writer_epoch if request.HasField("writer_epoch") else None,
        )
        seq, next_seq, cut = await self._tenant.writing.rewind(
            request.session_id,
            request.request_id,
            request.to_seq,
            guard,
            request.require_closed_turn,
        )
        return pb.RewindSessionResponse(seq=seq, next_seq=next_seq, cut=encoding.cut(cut))

    async def fork_session(self, request: pb.ForkSessionRequest) -> pb.ForkSessionResponse:
        """Fork."""
        head, cut = await self._tenant.writing.fork(
            request.session_id,
            request.request_id,
            request.child_session_id,
            request.at_seq if request.HasField("at_seq") else None,
            request.labels,
            request.metadata_json,
            request.require_closed_turn,
        )
        return pb.ForkSessionResponse(
            session=encoding.session(head), next_seq=head.next_seq, cut=encoding.cut(cut)
        )

    # Reading

    async def get_lineage(self, request: pb.GetLineageRequest) -> pb.GetLineageResponse:
        """List ancestors."""
        ancestors, next_seq = await self._tenant.reading.lineage(request.session_id)
        points = [session_pb2.ForkPoint(session_id=id_, at_seq=seq) for id_, seq in ancestors]
        return pb.GetLineageResponse(ancestors=points, next_seq=next_seq)

    async def diff_sessions(self, request: pb.DiffSessionsRequest) -> AsyncIterator[bytes]:
        """Compare two folds."""
        found = await self._tenant.reading.difference(
            request.left_session_id,
            request.right_session_id,
            request.left_at_seq if request.HasField("left_at_seq") else None,
            request.right_at_seq if request.HasField("right_at_seq") else None,
        )
        summary = pb.DiffSummary(
            common_count=found.common_count,
            left_count=len(found.left),
            right_count=len(found.right),
            shared_seq=found.shared_seq,
            left_next_seq=found.left_next_seq,
            right_next_seq=found.right_next_seq,
        )
        yield pb.DiffSessionsResponse(summary=summary).SerializeToString()
        for field, entries in ((2, found.left), (3, found.right)):
            async for piece in self._tenant.reading.messages(entries):
                yield encoding.nested(field, encoding.repeated(1, piece))

    async def list_events(self, request: pb.ListEventsRequest) -> raw.RawListEventsResponse:
        """List a page of events."""
        from_seq = seq_of_token(request.page_token) if request.page_token else request.from_seq
        if from_seq < 0:
            raise InvalidFieldError.of("from_seq", f"{from_seq} is below 0")
        page = await self._tenant.reading.events(
            request.session_id,
            from_seq,
            page_size(request.page_size, DEFAULT_PAGE_EVENTS, MAX_PAGE_EVENTS),
            frozenset(request.types),
        )
        return raw.RawListEventsResponse(
            events=[encoding.marked(stored) for stored in page.events],
            next_page_token="" if page.next_from is None else str(page.next_from),
            next_seq=page.next_seq,
        )

    async def watch_events(
        self, request: pb.WatchEventsRequest
    ) -> AsyncIterator[raw.RawWatchEventsResponse]:
        """Follow a session."""
        async for item in self._tenant.watching.watch(request.session_id, request.from_seq):
            match item:
                case Envelope():
                    yield raw.RawWatchEventsResponse(event=encoding.event(item))
                case CaughtUp():
                    caught_up = pb.CaughtUp(next_seq=item.next_seq)
                    yield raw.RawWatchEventsResponse(caught_up=caught_up)
                case event_pb2.HistoryDroppedFact():
                    yield raw.RawWatchEventsResponse(history_dropped=item)
                case event_pb2.DeletedFact():
                    yield raw.RawWatchEventsResponse(deleted=item)

    async def watch_all_events(
        self, request: pb.WatchAllEventsRequest
    ) -> AsyncIterator[raw.RawWatchAllEventsResponse]:
        """Follow every session."""
        async for item in self._tenant.watching.watch_all(request.after_cursor, request.from_now):
            if isinstance(item, CaughtUp):
                yield raw.RawWatchAllEventsResponse(cursor=item.cursor, caught_up=pb.CaughtUp())
                continue
            told = raw.RawWatchAllEventsResponse(cursor=item.cursor, session_id=item.session_id)
            if item.fact is not None:
                told.fact.CopyFrom(item.fact)
            else:
                told.event.CopyFrom(encoding.event(item.envelope))
                if request.omit_bodies:
                    told.event.ClearField("body")
            yield told

    async def get_messages(self, request: pb.GetMessagesRequest) -> AsyncIterator[bytes]:
        """Read the fold."""
        if request.skip < 0:
            raise InvalidFieldError.of("skip", f"{request.skip} is below 0")
        folded = await self._tenant.reading.fold(
            request.session_id,
            request.at_seq if request.HasField("at_seq") else None,
            request.min_next_seq if request.HasField("min_next_seq") else None,
            for_messages=request.skip == 0,
        )
        entries = tuple(folded.fold.surface)
        digest = encoding.digest(folded.fold.digest())
        about = pb.GetMessagesResponse(next_seq=folded.next_seq, count=len(entries))
        last: bytes = b""
        async for piece in self._tenant.reading.messages(entries[request.skip :]):
            if last:
                yield last + about.SerializeToString()
            last = encoding.repeated(1, piece)
        about.digest.CopyFrom(digest)
        yield last + about.SerializeToString()

    async def get_request_header(
        self, request: pb.GetRequestHeaderRequest
    ) -> pb.GetRequestHeaderResponse:
        """Read the folded header."""
        header, seq, next_seq = await self._tenant.reading.header(
            request.session_id, request.at_seq if request.HasField("at_seq") else None
        )
        return pb.GetRequestHeaderResponse(header=header, seq=seq, next_seq=next_seq)

    async def check_request(self, request: pb.CheckRequestRequest) -> pb.CheckRequestResponse:
        """Check a request against the log."""
        found = await self._tenant.checking.check(request)
        return encoding.judged(found)

    async def verify_session(self, request: pb.VerifySessionRequest) -> pb.VerifySessionResponse:
        """Audit a session."""
        verdict = await self._tenant.chains.verify(
            request.session_id, request.versions, request.include_deleted
        )
        return encoding.audited(verdict)

    # Transfer

    async def export_session(
        self, request: pb.ExportSessionRequest
    ) -> AsyncIterator[pb.ExportSessionResponse]:
        """Write a session's file."""
        pieces = self._tenant.transfer.export(request.session_id, request.with_attachments)
        async for piece in pieces:
            for start in range(0, len(piece), 1024 * 1024):
                yield pb.ExportSessionResponse(data=piece[start : start + 1024 * 1024])

    async def import_session(
        self, elements: AsyncIterator[pb.ImportSessionRequest]
    ) -> pb.ImportSessionResponse:
        """Make a session from a file."""
        first = await anext(elements, pb.ImportSessionRequest())
        if first.WhichOneof("kind") != "header":
            raise InvalidFieldError.of("header", "the first element is to be the header")

        async def data() -> AsyncIterator[bytes]:
            async for element in elements:
                if element.WhichOneof("kind") != "data":
                    raise InvalidFieldError.of("data", "each later element is to be data")
                yield element.data

        head, count = await self._tenant.transfer.import_file(
            first.header.session_id, first.header.request_id, data()
        )
        return pb.ImportSessionResponse(
            session=encoding.session(head), count=count, next_seq=head.next_seq
        )


def page_size(asked: int, default: int, most: int) -> int:
    """Return how many items a page may have. Raises InvalidFieldError for a negative number."""
    if asked < 0:
        raise InvalidFieldError.of("page_size", f"{asked} is below 0")
    return min(asked or default, most)


def seq_of_token(token: str) -> int:
    """Return the seq that a page token is. Raises InvalidFieldError for what is none."""
    if not (token.isascii() and token.isdecimal()) or len(token) > 18:
        raise InvalidFieldError.of("page_token", "it is no token of this listing")
    return int(token)


def _instant(request: pb.ListSessionsRequest, field: str) -> Instant | None:
    if not request.HasField(field):  # type: ignore[arg-type]
        return None
    time: Timestamp = getattr(request, field)
    return Instant(*time_of(time, field))


def _seeded(message: message_pb2.Message, path: str) -> raw.RawNewEvent:
    if int(message.role) not in TYPE_OF_ROLE:
        raise InvalidFieldError.of(f"{path}.role", f"{message.role} is no known role")
    event = raw.RawNewEvent(body=event_pb2.EventBody(message=message).SerializeToString())
    if message.HasField("create_time"):
        event.time.CopyFrom(message.create_time)
    return event


def _as_messages(error: InvalidFieldError) -> InvalidFieldError:
    """Return an error of the events a seed became as one of its messages."""
    fields = {
        path.replace("events[", "messages[")
        .replace("].body.message", "]")
        .replace("].time", "].create_time"): wrong
        for path, wrong in error.fields.items()
    }
    return InvalidFieldError(fields=fields)
