"""The calls of one session over the raw stub, in short forms."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from foldlog.v1 import event_pb2, message_pb2, service_pb2

DEADLINE_S = 60.0


def fresh_id(prefix: str = "s") -> str:
    """Return an id no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex}"


@dataclass
class Calls:
    """A session seen through the stub."""

    stub: Any
    session_id: str

    @classmethod
    def create(cls, stub: Any, session_id: str | None = None, **fields: Any) -> Calls:
        """Create a session under a fresh id, or the one given."""
        chosen = fresh_id() if session_id is None else session_id
        request = service_pb2.CreateSessionRequest(session_id=chosen, **fields)
        answer = stub.CreateSession(request, timeout=DEADLINE_S)
        return cls(stub, answer.session.session_id)

    def other(self, session_id: str) -> Calls:
        """Return the calls of another session of the same server."""
        return Calls(self.stub, session_id)

    def get(self) -> Any:
        """Return the Session."""
        request = service_pb2.GetSessionRequest(session_id=self.session_id)
        return self.stub.GetSession(request, timeout=DEADLINE_S).session

    def append(self, *events: event_pb2.NewEvent, **fields: Any) -> Any:
        """Append a batch and return the answer."""
        return self.stub.AppendEvents(self.append_request(*events, **fields), timeout=DEADLINE_S)

    def append_request(
        self, *events: event_pb2.NewEvent, **fields: Any
    ) -> service_pb2.AppendEventsRequest:
        """Return the request of an append."""
        return service_pb2.AppendEventsRequest(session_id=self.session_id, events=events, **fields)

    def seed(self, *messages: message_pb2.Message, **fields: Any) -> Any:
        """Seed and return the answer."""
        request = service_pb2.SeedSessionRequest(
            session_id=self.session_id, messages=messages, **fields
        )
        return self.stub.SeedSession(request, timeout=DEADLINE_S)

    def restore(self, *events: event_pb2.Event, **fields: Any) -> Any:
        """Restore events in one batch and return the answer."""
        return self.restore_batches([events], **fields)

    def restore_batches(self, batches: Iterable[Sequence[event_pb2.Event]], **fields: Any) -> Any:
        """Restore events batch by batch in one call and return the answer."""
        head = service_pb2.RestoreHeader(session_id=self.session_id, **fields)
        elements = itertools.chain(
            [service_pb2.RestoreEventsRequest(header=head)],
            (
                service_pb2.RestoreEventsRequest(batch=service_pb2.RestoreBatch(events=batch))
                for batch in batches
            ),
        )
        return self.stub.RestoreEvents(elements, timeout=DEADLINE_S)

    def snapshot(self, **fields: Any) -> Any:
        """Snapshot and return the answer."""
        request = service_pb2.SnapshotSessionRequest(session_id=self.session_id, **fields)
        return self.stub.SnapshotSession(request, timeout=DEADLINE_S)

    def rewind(self, to_seq: int, **fields: Any) -> Any:
        """Rewind and return the answer."""
        request = service_pb2.RewindSessionRequest(
            session_id=self.session_id, to_seq=to_seq, **fields
        )
        return self.stub.RewindSession(request, timeout=DEADLINE_S)

    def fork(self, at_seq: int | None = None, child: str | None = None, **fields: Any) -> Calls:
        """Fork and return the child's calls."""
        answer = self.fork_answer(at_seq, child, **fields)
        return self.other(answer.session.session_id)

    def fork_answer(
        self, at_seq: int | None = None, child: str | None = None, **fields: Any
    ) -> Any:
        """Fork under a fresh id, or the one given, and return the answer."""
        chosen = fresh_id("fork") if child is None else child
        request = service_pb2.ForkSessionRequest(
            session_id=self.session_id, child_session_id=chosen, at_seq=at_seq, **fields
        )
        return self.stub.ForkSession(request, timeout=DEADLINE_S)

    def delete(self, **fields: Any) -> Any:
        """Delete and return the answer."""
        request = service_pb2.DeleteSessionRequest(session_id=self.session_id, **fields)
        return self.stub.DeleteSession(request, timeout=DEADLINE_S)

    def erase(self, **fields: Any) -> Any:
        """Erase and return the answer."""
        request = service_pb2.EraseSessionRequest(session_id=self.session_id, **fields)
        return self.stub.EraseSession(request, timeout=DEADLINE_S)

    def update(self, **fields: Any) -> Any:
        """Update labels and metadata and return the answer."""
        request = service_pb2.UpdateSessionRequest(session_id=self.session_id, **fields)
        return self.stub.UpdateSession(request, timeout=DEADLINE_S)

    def open_writer(self, **fields: Any) -> Any:
        """Open a writer epoch and return the answer."""
        request = service_pb2.OpenWriterRequest(session_id=self.session_id, **fields)
        return self.stub.OpenWriter(request, timeout=DEADLINE_S)

    def close_writer(self, writer_epoch: int, **fields: Any) -> Any:
        """Close a writer epoch and return the answer."""
        request = service_pb2.CloseWriterRequest(
            session_id=self.session_id, writer_epoch=writer_epoch, **fields
        )
        return self.stub.CloseWriter(request, timeout=DEADLINE_S)

    def fold_pieces(self, at_seq: int | None = None, **fields: Any) -> list[Any]:
        """Return the pieces of the fold."""
        request = service_pb2.GetMessagesRequest(
            session_id=self.session_id, at_seq=at_seq, **fields
        )
        return list(self.stub.GetMessages(request, timeout=DEADLINE_S))

    def fold(self, at_seq: int | None = None, **fields: Any) -> list[Any]:
        """Return the folded messages, each with seq, position and time."""
        pieces = self.fold_pieces(at_seq, **fields)
        return [each for piece in pieces for each in piece.messages]

    def surface(self, at_seq: int | None = None) -> list[int]:
        """Return the seqs of the fold, in model order."""
        return [each.seq for each in self.fold(at_seq)]

    def messages(self, at_seq: int | None = None) -> list[Any]:
        """Return the messages of the fold."""
        return [each.message for each in self.fold(at_seq)]

    def texts(self, at_seq: int | None = None) -> list[str]:
        """Return the texts of the fold."""
        return [each.message.text for each in self.fold(at_seq)]

    def header_answer(self, at_seq: int | None = None) -> Any:
        """Return the folded request header's answer."""
        request = service_pb2.GetRequestHeaderRequest(session_id=self.session_id, at_seq=at_seq)
        return self.stub.GetRequestHeader(request, timeout=DEADLINE_S)

    def page(self, **fields: Any) -> Any:
        """Return one page of events."""
        request = service_pb2.ListEventsRequest(session_id=self.session_id, **fields)
        return self.stub.ListEvents(request, timeout=DEADLINE_S)

    def pages(self, **fields: Any) -> Iterator[Any]:
        """Yield pages of events to the end."""
        page = self.page(**fields)
        yield page
        while page.next_page_token:
            page = self.page(**(fields | {"page_token": page.next_page_token}))
            yield page

    def events(self, from_seq: int = 0, **fields: Any) -> list[Any]:
        """Return all events from a seq on."""
        pages = self.pages(from_seq=from_seq, **fields)
        return [each for page in pages for each in page.events]

    def check(self, *messages: message_pb2.Message, **fields: Any) -> Any:
        """Check a request and return the answer."""
        request = service_pb2.CheckRequestRequest(
            session_id=self.session_id, messages=messages, **fields
        )
        return self.stub.CheckRequest(request, timeout=DEADLINE_S)

    def violation(self, *messages: message_pb2.Message, **fields: Any) -> Any:
        """Check a request that departs from the log, and return how."""
        answer = self.check(*messages, **fields)
        assert answer.checked
        assert answer.HasField("violation")
        return answer.violation

    def verify(self) -> Any:
        """Recompute the chain and return the answer."""
        request = service_pb2.VerifySessionRequest(session_id=self.session_id)
        return self.stub.VerifySession(request, timeout=DEADLINE_S)

    def lineage(self) -> list[tuple[str, int]]:
        """Return the ancestors, nearest first, each with the last seq shared."""
        request = service_pb2.GetLineageRequest(session_id=self.session_id)
        answer = self.stub.GetLineage(request, timeout=DEADLINE_S)
        return [(each.session_id, each.at_seq) for each in answer.ancestors]

    def export(self) -> bytes:
        """Return the export's bytes."""
        request = service_pb2.ExportSessionRequest(session_id=self.session_id)
        return b"".join(each.data for each in self.stub.ExportSession(request, timeout=DEADLINE_S))

    def watch(self, from_seq: int = 0, timeout_s: float = DEADLINE_S) -> Any:
        """Open a watch."""
        request = service_pb2.WatchEventsRequest(session_id=self.session_id, from_seq=from_seq)
        return self.stub.WatchEvents(request, timeout=timeout_s)


def imported(
    stub: Any, data: bytes, session_id: str = "", sizes: Sequence[int] = (65_536,), **fields: Any
) -> Any:
    """Import a file cut into pieces of these sizes, in turn, and return the answer."""

    def elements() -> Iterator[service_pb2.ImportSessionRequest]:
        head = service_pb2.ImportHeader(session_id=session_id, **fields)
        yield service_pb2.ImportSessionRequest(header=head)
        offset = 0
        for size in itertools.cycle(sizes):
            if offset >= len(data):
                return
            yield service_pb2.ImportSessionRequest(data=data[offset : offset + size])
            offset += size

    return stub.ImportSession(elements(), timeout=DEADLINE_S)


def raw_call(channel: grpc.Channel, method: str, stream_out: bool = False) -> Callable[..., Any]:
    """Return a call that sends bytes as they are and returns bytes."""
    make = channel.unary_stream if stream_out else channel.unary_unary
    call: Callable[..., Any] = make(f"/foldlog.v1.SessionService/{method}")
    return call
