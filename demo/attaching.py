"""An image and a long tool result are stored as attachments, and come back."""

from __future__ import annotations

import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256

from foldlog import (
    AttachmentPart,
    Client,
    FoldedMessage,
    Session,
    TextPart,
    assistant,
    errors,
    replacing,
)

from demo.screen import Screen
from demo.transcripts import Transcript

BAND_PIXELS = 16
MOST_OXYGEN_MG_L = 10.0
BEGINNING_CHARACTERS = 300


def show(screen: Screen, client: Client, transcript: Transcript) -> None:
    """Attach an image to a message, and put a reference in the place of a long result."""
    screen.section(
        "Attach bytes",
        "They are stored once, under their SHA-256, and messages name them.",
    )
    parent = client.session(transcript.session_id)
    session = parent.fork(session_id=f"{parent.session_id}-with-chart")
    table = next(each for each in session.messages() if each.message.name == "read_dataset")
    _attach_image(screen, client, session, chart(str(table.message.content)))
    _trim(screen, client, session, table)


def _attach_image(screen: Screen, client: Client, session: Session, image: bytes) -> None:
    part = AttachmentPart(sha256(image).digest(), "image/png", "oxygen.png", len(image))
    message = assistant([TextPart("Oxygen in July and August, by depth:"), part])
    screen.claim(
        _is_refused(session, part),
        "a message that names bytes which are not there yet is refused",
    )
    first, again = client.put_attachment(image), client.put_attachment(image)
    seq = session.append(message).first_seq
    named = session.messages()[-1].message.content
    screen.claim(
        (first.existed, again.existed) == (False, True) and named == message.content,
        f"{part.name}, {len(image):,} bytes, is stored once though it was put twice",
        f"named by event {seq}, SHA-256 {part.sha256.hex()[:32]}…",
    )
    screen.claim(
        client.read_attachment(part.sha256) == image and image.startswith(b"\x89PNG"),
        "and comes back as it was, verified on the way in and on the way out",
    )


def _is_refused(session: Session, part: AttachmentPart) -> bool:
    try:
        session.append(assistant([part]))
    except errors.AttachmentNotFoundError:
        return True
    return False


def _trim(screen: Screen, client: Client, session: Session, long: FoldedMessage) -> None:
    """Store a tool result's text as an attachment, and leave its beginning on the surface."""
    text = str(long.message.content)
    stored = client.put_attachment(text.encode(), "text/csv")
    content = (TextPart(text[:BEGINNING_CHARACTERS]), stored.part("text/csv", "buoy.csv"))
    trimmed = replacing(
        replace(long.message, content=content), first_seq=long.seq, last_seq=long.seq, trim=True
    )
    session.append(trimmed)
    now = next(m for m in session.messages() if m.position == long.position)
    screen.claim(
        now.message == replace(long.message, content=content)
        and client.read_attachment(stored.sha256).decode() == text,
        f"a tool result of {len(text):,} bytes is trimmed to a beginning and a reference",
        f"event {now.seq} stands in the place of {long.seq}; no byte is lost",
    )


def chart(table: str) -> bytes:
    """Return a PNG of a buoy's oxygen: time runs to the right, a band for each depth goes down."""
    bands: defaultdict[float, bytearray] = defaultdict(bytearray)
    for line in table.splitlines()[1:]:
        _, depth, _, oxygen, _ = line.split(",")
        share = min(float(oxygen) / MOST_OXYGEN_MG_L, 1.0)
        bands[float(depth)] += bytes((round(200 * (1 - share)), 40, round(255 * share)))
    rows = [bands[depth] for depth in sorted(bands) for _ in range(BAND_PIXELS)]
    width = len(rows[0]) // 3
    return b"".join(_png(width, [bytes(row) for row in rows]))


def _png(width: int, rows: list[bytes]) -> Iterator[bytes]:
    yield b"\x89PNG\r\n\x1a\n"
    yield _chunk(b"IHDR", struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0))
    yield _chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows)))
    yield _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
