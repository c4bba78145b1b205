"""Every call that names a session, as requests about one session, and what answers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import grpc
from foldlog.v1 import event_pb2, service_pb2
from google.protobuf.message import Message

from tests.contract.calls import DEADLINE_S
from tests.contract.refusal import Refusal, refusal_in, refusal_of
from tests.contract.requesting import HEADER
from tests.contract.said import user, user_message

METHODS = service_pb2.DESCRIPTOR.services_by_name["SessionService"].methods_by_name
CHILD = "child-of-whom"
USED = "request-used"
TOO_LONG = "r" * 200
# These make a session of the name they are given: that it is taken they have to say.
MAKING = frozenset({"CreateSession", "ImportSession"})

REST: Mapping[str, Mapping[str, Any]] = {
    "UpdateSession": {"set_labels": {"a": "b"}},
    "CloseWriter": {"writer_epoch": 1},
    "AppendEvents": {"events": [user("again")]},
    "SeedSession": {"messages": [user_message("a")]},
    "CheckRequest": {"messages": [user_message("a")]},
    "RecordHeader": {"header": HEADER},
    "BeginStep": {"header": HEADER},
    "RecordRequest": {"sent": event_pb2.SentRequest(encoding_sha256=bytes(32))},
    "SuggestRange": {"entries": event_pb2.EntryRange(first_seq=0, last_seq=0)},
    "RewindSession": {"to_seq": -1},
}


def _fill(request: Message, session_id: str, request_id: str) -> bool:
    """Put a session's id wherever a message names a session; tell whether it does."""
    names = False
    for field in request.DESCRIPTOR.fields:
        if field.name == "child_session_id":
            setattr(request, field.name, CHILD)
        elif field.name == "request_id":
            setattr(request, field.name, request_id)
        elif field.name.endswith("session_id"):
            setattr(request, field.name, session_id)
            names = True
    return names


def naming(
    rpc: str,
    session_id: str,
    request_id: str = USED,
    fork_labels: Mapping[str, str] = MappingProxyType({}),
) -> list[Message]:
    """Return the request, or the elements of one, by which a call names a session; else nothing."""
    if rpc in MAKING:
        return []
    if rpc == "AppendStream":
        batch = service_pb2.AppendEventsRequest(events=[user("again")])
        _fill(batch, session_id, request_id)
        return [service_pb2.AppendStreamRequest(number=1, batch=batch)]
    if rpc == "RestoreEvents":
        header = service_pb2.RestoreHeader()
        _fill(header, session_id, request_id)
        event = event_pb2.Event(seq=9, body=user("again").body)
        batch_of = service_pb2.RestoreBatch(events=[event])
        return [
            service_pb2.RestoreEventsRequest(header=header),
            service_pb2.RestoreEventsRequest(batch=batch_of),
        ]
    kind = getattr(service_pb2, METHODS[rpc].input_type.name)
    request = kind(**REST.get(rpc, {}))
    if rpc == "ForkSession":
        request.labels.update(fork_labels)
    return [request] if _fill(request, session_id, request_id) else []


def answered(stub: Any, rpc: str, elements: list[Message]) -> list[bytes] | Refusal:
    """Make a call and return the answers as bytes, or what it refused with."""
    method = METHODS[rpc]
    request = iter(elements) if method.client_streaming else elements[0]
    call = getattr(stub, rpc)(request, timeout=DEADLINE_S)
    if not method.server_streaming:
        return [call.SerializeToString()]
    return [*_some(call)]


def _some(call: Any) -> Iterator[bytes]:
    for answer in call:
        if getattr(answer, "error", None) is not None and answer.HasField("error"):
            yield repr(refusal_in(answer.error)).encode()
        else:
            yield answer.SerializeToString()
        if "caught_up" in str(answer):
            call.cancel()
            return


def outcome(stub: Any, rpc: str, elements: list[Message], session_id: str) -> str:
    """Return all that a call says, with the session's id left out."""
    try:
        said = answered(stub, rpc, elements)
    except grpc.RpcError as error:
        said = refusal_of(error)
    return repr(said).replace(session_id, "<session>")
