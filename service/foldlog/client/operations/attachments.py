"""Operations on attachments: bytes of any size, stored under their SHA-256."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256 as new_sha256
from io import BytesIO
from typing import Any, BinaryIO, Final

from foldlog.client.encoding import request
from foldlog.client.methods import (
    COLLECT_ATTACHMENTS,
    GET_ATTACHMENT,
    HEAD_ATTACHMENTS,
    PUT_ATTACHMENT,
)
from foldlog.client.operations.files import TRANSFER_TIMEOUT_S
from foldlog.client.retries import Attempts, unary, upload
from foldlog.client.state import ClientState
from foldlog.client.steps import Failure, Open, Operation, Receive
from foldlog.client.values import Collected, StoredAttachment
from foldlog.core.errors import AttachmentCorruptError
from foldlog.v1 import service_pb2 as pb

PIECE_BYTES: Final = 512 * 1024
DIGESTS_AT_ONCE: Final = 1_000


def put_attachment(
    client: ClientState[Any],
    data: bytes | BinaryIO,
    media_type: str = "",
    *,
    sha256: bytes = b"",
    timeout_s: float = TRANSFER_TIMEOUT_S,
) -> Operation[StoredAttachment]:
    """Store bytes, or what a file that is open for reading bytes has from here on.

    The media type is checked for its form only: it belongs to references. A digest that is given
    is compared. Putting what is stored is no error, and heals it where it is damaged. If the
    connection is lost, a file that can seek is sent again from where it stood.
    """
    file = BytesIO(data) if isinstance(data, bytes) else data
    may_repeat = file.seekable()
    start = file.tell() if may_repeat else 0
    size = len(data) if isinstance(data, bytes) else None
    header = request(pb.AttachmentHeader, sha256=sha256, media_type=media_type, size_bytes=size)

    def requests() -> Iterator[pb.PutAttachmentRequest]:
        if may_repeat:
            file.seek(start)
        yield pb.PutAttachmentRequest(header=header)
        while piece := file.read(PIECE_BYTES):
            yield pb.PutAttachmentRequest(data=piece)

    attempts = client.attempts(timeout_s)
    answer = yield from upload(attempts, PUT_ATTACHMENT, requests, may_repeat=may_repeat)
    return StoredAttachment(answer.sha256, answer.size_bytes, answer.existed)


def get_attachment(
    client: ClientState[Any],
    sha256: bytes,
    file: BinaryIO,
    *,
    offset: int = 0,
    length: int = 0,
    timeout_s: float = TRANSFER_TIMEOUT_S,
) -> Operation[int]:
    """Write stored bytes to a file that is open for writing bytes; return how many.

    A length of 0 means all that follow the offset. If the connection is lost, the rest is asked
    for. The digest of the whole is compared here as well.
    """
    attempts, came = client.attempts(timeout_s), _Arrived(file)
    while True:
        left = max(0, length - came.count)
        asked = request(
            pb.GetAttachmentRequest, sha256=sha256, offset=offset + came.count, length=left
        )
        failure = yield from _receive(came, asked, attempts)
        if failure is None or (length and came.count == length):
            break
        yield from attempts.after(failure)
    if not offset and came.count == came.size_bytes and came.digest.digest() != sha256:
        raise AttachmentCorruptError(sha256=sha256.hex())
    return came.count


class _Arrived:
    """The bytes that have arrived."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0
        self.size_bytes = 0
        self.digest = new_sha256()

    def take(self, piece: pb.GetAttachmentResponse) -> None:
        self._file.write(piece.data)
        self.count += len(piece.data)
        self.size_bytes = piece.size_bytes or self.size_bytes
        self.digest.update(piece.data)


def _receive(
    came: _Arrived, asked: pb.GetAttachmentRequest, attempts: Attempts
) -> Operation[Failure | None]:
    stream = yield Open(GET_ATTACHMENT, asked, attempts.remaining_s)
    try:
        while (piece := (yield Receive(stream))) is not None:
            if isinstance(piece, Failure):
                return piece
            came.take(piece)
        return None
    finally:
        stream.cancel()


def read_attachment(
    client: ClientState[Any], sha256: bytes, *, timeout_s: float = TRANSFER_TIMEOUT_S
) -> Operation[bytes]:
    """Return all of an attachment, which is to fit into memory."""
    file = BytesIO()
    yield from get_attachment(client, sha256, file, timeout_s=timeout_s)
    return file.getvalue()


def find_attachments(
    client: ClientState[Any], digests: Iterable[bytes], *, timeout_s: float | None = None
) -> Operation[dict[bytes, int]]:
    """Return the sizes of those that are stored. They are as young as if they were put again."""
    wanted = list(dict.fromkeys(digests))
    found: dict[bytes, int] = {}
    attempts = client.attempts(timeout_s)
    for start in range(0, len(wanted), DIGESTS_AT_ONCE):
        asked = request(pb.HeadAttachmentsRequest, sha256=wanted[start : start + DIGESTS_AT_ONCE])
        answer = yield from unary(attempts, HEAD_ATTACHMENTS, asked)
        found |= {each.sha256: each.size_bytes for each in answer.attachments}
    return found


def collect_attachments(
    client: ClientState[Any],
    *,
    dry_run: bool = False,
    grace_s: int | None = None,
    timeout_s: float = TRANSFER_TIMEOUT_S,
) -> Operation[Collected]:
    """Delete the attachments that no stored event names and that are older than the grace.

    The grace is the server's at least.
    """
    asked = request(pb.CollectAttachmentsRequest, dry_run=dry_run, grace_s=grace_s)
    answer = yield from unary(client.attempts(timeout_s), COLLECT_ATTACHMENTS, asked)
    return Collected(answer.collected_count, answer.collected_bytes, answer.examined_count)
