"""Attachments over the raw stub, in short forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from foldlog.v1 import event_pb2, message_pb2, service_pb2

from tests.contract.calls import DEADLINE_S
from tests.contract.said import event

PIECE_BYTES = 200_000


def put(stub: Any, data: bytes, piece_bytes: int = PIECE_BYTES, **header: Any) -> Any:
    """Put bytes and return the answer. Keywords are fields of the header."""
    return stub.PutAttachment(iter(elements(data, piece_bytes, **header)), timeout=DEADLINE_S)


def elements(
    data: bytes, piece_bytes: int = PIECE_BYTES, **header: Any
) -> Iterator[service_pb2.PutAttachmentRequest]:
    """Yield the elements of an upload."""
    yield service_pb2.PutAttachmentRequest(header=service_pb2.AttachmentHeader(**header))
    for start in range(0, len(data), piece_bytes):
        yield service_pb2.PutAttachmentRequest(data=data[start : start + piece_bytes])


def pieces(stub: Any, digest: bytes, offset: int = 0, length: int = 0) -> list[Any]:
    """Return the pieces of a range."""
    request = service_pb2.GetAttachmentRequest(sha256=digest, offset=offset, length=length)
    return list(stub.GetAttachment(request, timeout=DEADLINE_S))


def got(stub: Any, digest: bytes, offset: int = 0, length: int = 0) -> bytes:
    """Return the bytes of a range."""
    return b"".join(each.data for each in pieces(stub, digest, offset, length))


def stored(stub: Any, *digests: bytes) -> dict[bytes, int]:
    """Return the sizes of those that are stored."""
    request = service_pb2.HeadAttachmentsRequest(sha256=digests)
    answer = stub.HeadAttachments(request, timeout=DEADLINE_S)
    return {each.sha256: each.size_bytes for each in answer.attachments}


def collect(stub: Any, **fields: Any) -> Any:
    """Collect and return the answer."""
    request = service_pb2.CollectAttachmentsRequest(**fields)
    return stub.CollectAttachments(request, timeout=DEADLINE_S)


def digest_of(data: bytes) -> bytes:
    """Return the digest that bytes are stored under."""
    return sha256(data).digest()


def naming(*digests: bytes, text: str = "look", **fields: Any) -> message_pb2.Message:
    """Return a user message that names attachments. Keywords are fields of each reference."""
    about = {"media_type": "image/png"} | fields
    parts = [message_pb2.Part(text=text)]
    for digest in digests:
        ref = message_pb2.AttachmentRef(sha256=digest, **about)
        parts.append(message_pb2.Part(attachment=ref))
    content = message_pb2.PartList(parts=parts)
    return message_pb2.Message(role=message_pb2.ROLE_USER, parts=content)


def looking(*digests: bytes, **fields: Any) -> event_pb2.NewEvent:
    """Return the event of a message that names attachments."""
    return event(naming(*digests, **fields))


def sample(size: int, salt: Sequence[object] = ()) -> bytes:
    """Return bytes that no other salt gives."""
    seed = sha256(repr((size, salt)).encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]
