"""Operations that move whole sessions to and from files of JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from google.protobuf.message import Message as ProtoMessage

from foldlog.client.encoding import request
from foldlog.client.fitting import valid_session_id
from foldlog.client.methods import EXPORT_SESSION, IMPORT_SESSION
from foldlog.client.retries import upload
from foldlog.client.state import ClientState, S, SessionState, new_request_id
from foldlog.client.steps import Failure, Open, Operation, Receive
from foldlog.v1 import service_pb2 as pb

PIECE_BYTES: Final = 256 * 1024
TRANSFER_TIMEOUT_S: Final = 3_600.0


def export(
    session: SessionState,
    file: BinaryIO,
    *,
    with_attachments: bool = False,
    timeout_s: float = TRANSFER_TIMEOUT_S,
) -> Operation[int]:
    """Write the whole log to a file that is open for writing bytes; return how many were written.

    With attachments, those that events name are in the file too, and an import puts them back.
    If the connection is lost, a file that can seek is written again from where it stood.
    """
    attempts = session.client.attempts(timeout_s)
    asked = request(
        pb.ExportSessionRequest, session_id=session.session_id, with_attachments=with_attachments
    )
    start = file.tell() if file.seekable() else None
    while True:
        outcome = yield from _export_once(file, asked, attempts.remaining_s)
        if isinstance(outcome, int):
            return outcome
        if start is None:
            raise outcome.error
        yield from attempts.after(outcome)
        file.seek(start)
        file.truncate()


def _export_once(file: BinaryIO, asked: ProtoMessage, timeout_s: float) -> Operation[int | Failure]:
    written = 0
    stream = yield Open(EXPORT_SESSION, asked, timeout_s)
    try:
        while (piece := (yield Receive(stream))) is not None:
            if isinstance(piece, Failure):
                return piece
            file.write(piece.data)
            written += len(piece.data)
        return written
    finally:
        stream.cancel()


def import_session(
    client: ClientState[S],
    file: BinaryIO,
    session_id: str | None = None,
    *,
    request_id: str | None = None,
    timeout_s: float = TRANSFER_TIMEOUT_S,
) -> Operation[S]:
    """Make a session from an exported file that is open for reading bytes: all of it or nothing.

    Without an id it gets the one in the file. If the connection is lost, a file that can seek is
    sent again from where it stood.
    """
    if session_id is not None:
        valid_session_id(session_id)
    may_repeat = file.seekable()
    start = file.tell() if may_repeat else 0
    header = request(pb.ImportHeader, session_id=session_id, request_id=new_request_id(request_id))

    def requests() -> Iterator[pb.ImportSessionRequest]:
        if may_repeat:
            file.seek(start)
        yield pb.ImportSessionRequest(header=header)
        while data := file.read(PIECE_BYTES):
            yield pb.ImportSessionRequest(data=data)

    attempts = client.attempts(timeout_s)
    answer = yield from upload(attempts, IMPORT_SESSION, requests, may_repeat=may_repeat)
    session = client.session(answer.session.session_id)
    session.saw(answer.next_seq)
    return session
