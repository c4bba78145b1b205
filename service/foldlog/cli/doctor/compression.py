"""Doctor's look at compression: whether it is on, and whether what is compressed can be read."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from foldlog.cli.doctor.encryption import Rows
from foldlog.cli.doctor.finding import Finding, fault, ok
from foldlog.compression import PackedError, is_packed, packer_of, unpacked
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.errors import DriverMissingError
from foldlog.settings import Settings

SUBJECT = "compression"
EXTRA = "pip install 'foldlog[zstd]'"
LOOKED_AT = 1_000
NEWEST = "SELECT state FROM foldlog_events ORDER BY notification_id DESC LIMIT %s"


def compression(given: Settings, rows: Rows) -> Iterator[Finding]:
    """Look at the setting, and at the newest rows. Of encrypted ones nothing can be told.

    Says nothing where there is neither.
    """
    try:
        packer_of(given.compression)
    except DriverMissingError as error:
        yield fault(SUBJECT, str(error), "The service cannot start.", EXTRA)
        return
    if given.compression != "none":
        yield ok(SUBJECT, f"the bodies of new events are compressed with {given.compression}")
    states = [bytes(row[0]) for row in rows((NEWEST, [LOOKED_AT])) if row[0] is not None]
    packed = [body for body in map(_body, states) if is_packed(body)]
    unread = [why for why in map(_why_unread, packed) if why]
    said = f"{len(packed)} of the newest {len(states)} rows are compressed"
    if unread:
        why = f"The first of them {unread[0]}."
        what = f"{said}, and {len(unread)} of those cannot be read"
        yield fault(SUBJECT, what, why, f"{EXTRA}, or a newer release, or restore a backup.")
    elif packed:
        yield ok(SUBJECT, f"{said}, and can be read")


def _body(state: bytes) -> bytes:
    try:
        return Envelope.FromString(state).body
    except DecodeError:
        return b""  # damage, which `foldlog verify` tells


def _why_unread(body: bytes) -> str:
    try:
        unpacked(body)
    except PackedError as error:
        return str(error)
    return ""
