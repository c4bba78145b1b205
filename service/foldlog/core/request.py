"""The service's own encoding of a request, whose SHA-256 says whether two requests are the same.

As docs/reference/request-encoding.md defines it: a version byte, the header, then one message after
the other up to the end. So a request that only adds messages begins with the bytes of the one
before, as it does in a provider's prefix cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from struct import error as StructError

from foldlog.core.digest import framed_text, message_pieces, optional_text
from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header
from foldlog.core.message import Message

VERSION = b"\x01"
_U32 = Struct(">I").pack


def encoded_header(header: Header) -> bytes:
    """Return the beginning of a request's encoding: the version, then the header as written."""
    tools = [framed_text(tool) for tool in header.tools_json]
    return b"".join(
        (
            VERSION,
            framed_text(header.provider),
            framed_text(header.model),
            framed_text(header.parameters_json),
            framed_text(header.system_prompt),
            _U32(len(tools)),
            *tools,
            framed_text(header.reasoning_effort),
        )
    )


def encoded_message(message: Message, group: str | None = None) -> bytes:
    """Return what a message adds to a request's encoding, its length in front.

    All is in it that a provider's body is made from: beside what is compared by a check a system
    message's content, reasoning, metadata and the group. Raises InvalidFieldError if a text has no
    UTF-8 form or a number does not fit its field.
    """
    try:
        pieces = message_pieces(message)
        pieces += map(optional_text, (message.reasoning, message.metadata_json, group))
    except UnicodeEncodeError as error:
        raise InvalidFieldError.of("message", f"has a text without UTF-8 form: {error}") from None
    except StructError as error:
        raise InvalidFieldError.of("message", f"has a number out of range: {error}") from None
    encoded = b"".join(pieces)
    return _U32(len(encoded)) + encoded


class RequestHash:
    """The SHA-256 of a request's encoding as it grows by messages."""

    __slots__ = ("_sha", "count", "size_bytes")

    def __init__(self, header: Header) -> None:
        beginning = encoded_header(header)
        self._sha = sha256(beginning)
        self.count = 0
        self.size_bytes = len(beginning)

    def copy(self) -> RequestHash:
        """Return an independent hash that stands at the same place."""
        twin = RequestHash.__new__(RequestHash)
        twin._sha, twin.count, twin.size_bytes = self._sha.copy(), self.count, self.size_bytes
        return twin

    def add(self, encoded: bytes) -> None:
        """Take in the next message, encoded."""
        self._sha.update(encoded)
        self.count += 1
        self.size_bytes += len(encoded)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of what was taken in so far: 32 bytes."""
        return self._sha.digest()


def request_digest(header: Header, messages: Iterable[tuple[Message, str | None]]) -> bytes:
    """Return the SHA-256 of a request's encoding: its header, its messages and their groups."""
    hashed = RequestHash(header)
    for message, group in messages:
        hashed.add(encoded_message(message, group))
    return hashed.digest
