"""What makes a stored row evident: its commitment and its place in the chain."""

from __future__ import annotations

import hmac
from hashlib import sha256
from uuid import UUID

from foldlog.internal.v1.storage_pb2 import Envelope

GENESIS = bytes(32)


def commitment(key: bytes, body: bytes) -> bytes:
    """Return HMAC-SHA-256 of a body under the session's key."""
    return hmac.digest(key, body, "sha256")


def chain_value(
    previous: bytes, aggregate_id: UUID, version: int, topic: str, envelope: Envelope
) -> bytes:
    """Return the chain value of a row; its envelope has a commitment, no body and no chain."""
    kind = topic.encode()
    place = aggregate_id.bytes + version.to_bytes(8) + len(kind).to_bytes(4) + kind
    return sha256(previous + place + envelope.SerializeToString(deterministic=True)).digest()


def unsealed(envelope: Envelope) -> Envelope:
    """Return a copy of a stored envelope as it went into its chain value."""
    copy = Envelope()
    copy.CopyFrom(envelope)
    copy.ClearField("body")
    copy.ClearField("chain")
    copy.ClearField("dropped")
    copy.ClearField("encrypted_body")
    copy.ClearField("lineage")
    copy.ClearField("session_id")
    copy.ClearField("still_encrypted")
    return copy


def seal(
    envelope: Envelope,
    body: bytes,
    key: bytes,
    previous: bytes,
    aggregate_id: UUID,
    version: int,
    topic: str,
) -> None:
    """Give an envelope its commitment, chain value and body."""
    dropped, envelope.dropped = envelope.dropped, False  # no part of the chain: it may come later
    envelope.commitment = commitment(key, body)
    envelope.chain = chain_value(previous, aggregate_id, version, topic, envelope)
    envelope.body, envelope.dropped = body, dropped
