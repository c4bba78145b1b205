"""Sessions of a length, made through the service as workers would make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from foldlog.v1.event_pb2 import NewEvent
from foldlog.v1.message_pb2 import Message
from foldlog.v1.service_pb2 import AppendEventsRequest, CreateSessionRequest

from bench import encoding, wire, workload
from tests.served import Served

BATCH: Final = 500


def created(served: Served, count: int) -> Sequence[str]:
    """Create so many sessions and return their ids."""
    ids = [str(uuid4()) for _ in range(count)]
    for each in ids:
        served.stub.CreateSession(CreateSessionRequest(session_id=each))
    return ids


def grown(served: Served, length: int, seed: int = 1, batch: int = BATCH) -> str:
    """Create a session of so many messages, of which `batch` are written at a time."""
    (session_id,) = created(served, 1)
    stream: Any = served.channel.stream_stream(f"{wire.SERVICE}AppendStream")
    for answer in stream(_elements(session_id, length, seed, batch)):
        wire.require_appended(answer)
    return session_id


def _elements(session_id: str, length: int, seed: int, batch: int) -> Iterator[bytes]:
    events = (encoding.event(each) for turn in workload.turns(seed) for each in turn)
    for number, start in enumerate(range(0, length, batch), 1):
        taken = list(islice(events, min(batch, length - start)))
        request = AppendEventsRequest(
            session_id=session_id, request_id=f"{session_id}-{number}", events=taken
        )
        yield wire.field(1, request.SerializeToString()) + b"\x18" + wire.varint(number)


def compacted(served: Served, length: int, live: int) -> str:
    """Create a session of so many messages, of which a summary and the last ones are live."""
    session_id = grown(served, length - 1)
    summary = NewEvent()
    summary.body.message.CopyFrom(Message(role=2, text="What was said before."))  # type: ignore[arg-type]
    summary.replace.positions.start, summary.replace.positions.stop = 0, length - live - 1
    served.stub.AppendEvents(AppendEventsRequest(session_id=session_id, events=[summary]))
    return session_id


def read_bytes(served: Served, request: Any) -> int:
    """Read the messages of a session as bytes and return how many bytes came."""
    call: Any = served.channel.unary_stream(f"{wire.SERVICE}GetMessages")
    return sum(len(piece) for piece in call(request.SerializeToString()))
