"""Operations that bring signed heads, to be kept outside of the database."""

from __future__ import annotations

from foldlog.client.decoding import head_from_proto
from foldlog.client.encoding import request
from foldlog.client.fitting import valid_session_id
from foldlog.client.methods import GET_SIGNING_KEY, LIST_HEADS
from foldlog.client.operations.files import TRANSFER_TIMEOUT_S
from foldlog.client.retries import unary
from foldlog.client.state import ClientState, S
from foldlog.client.steps import Emission, Emit, Failure, Open, Operation, Receive
from foldlog.client.values import SessionHead
from foldlog.v1 import service_pb2 as pb


def heads(
    client: ClientState[S],
    session_id: str | None = None,
    *,
    after_cursor: str = "",
    sign: bool = False,
    timeout_s: float = TRANSFER_TIMEOUT_S,
) -> Emission[SessionHead]:
    """Iterate over heads as the stored rows have them, signed if asked: one session's or all.

    Of all, those with rows behind a cursor that came with a head before. If the connection is
    lost, it goes on behind the last head. Raises SigningKeyMissingError.
    """
    if session_id is not None:
        valid_session_id(session_id)
    asked = request(
        pb.ListHeadsRequest, session_id=session_id, after_cursor=after_cursor, sign=sign
    )
    attempts = client.attempts(timeout_s)
    while True:
        stream = yield Open(LIST_HEADS, asked, attempts.remaining_s)
        try:
            piece = yield Receive(stream)
            while not (piece is None or isinstance(piece, Failure)):
                for head in piece.heads:
                    yield Emit(head_from_proto(head))
                    asked.after_cursor = head.cursor
                piece = yield Receive(stream)
        finally:
            stream.cancel()
        if piece is None:
            return
        yield from attempts.after(piece)


def signing_key(client: ClientState[S], *, timeout_s: float | None = None) -> Operation[bytes]:
    """Return the public key that the service signs with: 32 bytes, Ed25519.

    Raises SigningKeyMissingError.
    """
    asked = pb.GetSigningKeyRequest()
    answer = yield from unary(client.attempts(timeout_s), GET_SIGNING_KEY, asked)
    return answer.public_key
