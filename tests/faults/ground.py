"""A session with something of everything in it, for rubbish to fall on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foldlog.v1 import service_pb2

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.recovering import logs_call
from tests.contract.requesting import HEADER, begin, record, sent_of
from tests.contract.said import assistant, custom, replacing, result, turn_end, turn_start, user


@dataclass(frozen=True, slots=True)
class Ground:
    """What can be named: the session, an attachment's digest, and the session's export."""

    session_id: str
    digest: bytes
    export: bytes

    @property
    def child_id(self) -> str:
        """The session's fork."""
        return f"{self.session_id}-child"


def grown(stub: Any, session_id: str) -> Ground:
    """Make the session: turns, calls, a step with its request, a replace, a fork, an attachment."""
    digest = put(stub, f"the attachment of {session_id}".encode())
    log = Calls.create(stub, session_id, labels={"kind": "ground"}, metadata_json='{"a":[1,2]}')
    log.append(turn_start(1), user("question"), assistant(None, "c1"), logs_call("c1"))
    log.append(result("answer", "c1"), custom("note", b"{}", "k"), turn_end(1))
    begun = begin(log, user("more"), header=HEADER)
    record(log, sent_of(begun.request, body_sha256=bytes(32)))
    log.append(user("again"), replacing(user("summary"), 1, 4))
    log.fork(5, f"{session_id}-child")
    log.rewind(log.get().next_seq - 2)
    return Ground(session_id, digest, log.export())


def put(stub: Any, data: bytes) -> bytes:
    """Put an attachment and return its digest."""
    header = service_pb2.AttachmentHeader()
    elements = [
        service_pb2.PutAttachmentRequest(header=header),
        service_pb2.PutAttachmentRequest(data=data),
    ]
    digest: bytes = stub.PutAttachment(iter(elements), timeout=DEADLINE_S).sha256
    return digest
