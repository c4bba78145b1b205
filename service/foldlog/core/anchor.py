"""Anchors: signed heads of logs, as they are kept outside of the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

PURPOSE = b"foldlog head 1\0"
CHAIN_BYTES = KEY_ID_BYTES = 32
SIGNATURE_BYTES = 64
LARGEST = 2**63


@dataclass(frozen=True, slots=True)
class Anchor:
    """That a session's log came to a chain value at a version, and when that was so.

    The cursor is where to go on with anchoring; it is not signed.
    """

    tenant: str
    session_id: str
    version: int
    next_seq: int
    chain: bytes
    time: str
    key_id: bytes
    signature: bytes = b""
    cursor: str = ""

    def signed_bytes(self) -> bytes:
        """Return what the signature is over.

        Every text has its length in bytes before it, every number is of eight bytes, and all are
        big-endian, so that no two anchors have the same bytes.
        """
        numbers = self.version.to_bytes(8) + self.next_seq.to_bytes(8)
        texts = _framed(self.tenant) + _framed(self.session_id)
        return PURPOSE + texts + numbers + self.chain + _framed(self.time) + self.key_id

    def line(self) -> str:
        """Return the line that it is in a file of anchors."""
        fields = {
            "tenant": self.tenant,
            "session_id": self.session_id,
            "version": self.version,
            "next_seq": self.next_seq,
            "chain": self.chain.hex(),
            "time": self.time,
            "key_id": self.key_id.hex(),
            "signature": self.signature.hex(),
        }
        if self.cursor:
            fields["cursor"] = self.cursor
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


def anchor_of(line: str) -> Anchor:
    """Return the anchor that a line holds. Raises ValueError that says what is wrong with it."""
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError("it is no object")
    return Anchor(
        _text(fields, "tenant"),
        _text(fields, "session_id"),
        _number(fields, "version", 1),
        _number(fields, "next_seq", 0),
        _digits(fields, "chain", CHAIN_BYTES),
        _text(fields, "time"),
        _digits(fields, "key_id", KEY_ID_BYTES),
        _digits(fields, "signature", SIGNATURE_BYTES),
        _text({"cursor": ""} | fields, "cursor"),
    )


def _framed(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(4) + encoded


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or "\0" in value or not _is_unicode(value):
        raise ValueError(f"{name} is no text")
    return value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _number(fields: Mapping[str, object], name: str, least: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < LARGEST:
        raise ValueError(f"{name} is no whole number from {least} on")
    return value


def _digits(fields: Mapping[str, object], name: str, size: int) -> bytes:
    text = _text(fields, name)
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != size:
        raise ValueError(f"{name} is not {2 * size} hexadecimal digits")
    return value
