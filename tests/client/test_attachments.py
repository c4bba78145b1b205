"""Attachments through the clients: put, got, found, collected; exports that carry them."""

from __future__ import annotations

import io
from hashlib import sha256
from pathlib import Path

import pytest
from foldlog import (
    AsyncClient,
    AttachmentPart,
    Client,
    Message,
    Role,
    Session,
    StoredAttachment,
    TextPart,
    errors,
    user,
)
from foldlog.client.operations.attachments import get_attachment
from foldlog.v1 import service_pb2 as pb

from tests.client.driving import END, LOST, Driven, State

PICTURE = b"\x89PNG" * 300_000
DIGEST = sha256(PICTURE).digest()


def test_a_picture_goes_in_a_message_and_comes_back(client: Client, session: Session) -> None:
    stored = client.put_attachment(PICTURE, "image/png", sha256=DIGEST)
    assert (stored.sha256, stored.size_bytes) == (DIGEST, len(PICTURE))
    session.append(user([TextPart("look"), stored.part("image/png", "a.png")]))
    (folded,) = session.messages()
    assert isinstance(folded.message.content, tuple)
    ref = folded.message.content[1]
    assert ref == AttachmentPart(DIGEST, "image/png", "a.png", len(PICTURE))
    assert client.read_attachment(DIGEST) == PICTURE
    assert client.put_attachment(io.BytesIO(PICTURE)) == StoredAttachment(
        DIGEST, len(PICTURE), existed=True
    )


def test_a_file_goes_in_from_where_it_stands_and_out_in_ranges(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"skipped" + PICTURE)
    with path.open("rb") as file:
        file.seek(7)
        digest = client.put_attachment(file).sha256
    assert digest == DIGEST
    out = io.BytesIO()
    assert client.get_attachment(digest, out, offset=4, length=10) == 10
    assert client.get_attachment(digest, out, offset=len(PICTURE) - 1) == 1
    assert out.getvalue() == PICTURE[4:14] + PICTURE[-1:]


def test_what_is_absent_is_one_error_asked_for_or_named(client: Client, session: Session) -> None:
    absent = sha256(b"absent").digest()
    assert client.find_attachments([absent, absent]) == {}
    with pytest.raises(errors.AttachmentUnknownError) as asked:
        client.read_attachment(absent)
    assert asked.value.sha256 == absent.hex()
    named = Message(Role.USER, (AttachmentPart(absent, "a/b"),))
    with pytest.raises(errors.AttachmentNotFoundError) as refused:
        session.append(named)
    assert not isinstance(refused.value, errors.AttachmentUnknownError)


def test_an_export_with_attachments_is_longer(client: Client, session: Session) -> None:
    session.append(user([client.put_attachment(PICTURE).part("image/png")]))
    plain, whole = io.BytesIO(), io.BytesIO()
    session.export(plain)
    session.export(whole, with_attachments=True)
    assert len(whole.getvalue()) > len(plain.getvalue()) + len(PICTURE)


def test_a_collection_within_the_grace_takes_nothing(client: Client) -> None:
    client.put_attachment(b"young")
    collected = client.collect_attachments(dry_run=True, grace_s=1)
    assert (collected.collected_count, collected.collected_bytes) == (0, 0)
    assert collected.examined_count >= 1


async def test_the_asynchronous_client_does_the_same(async_client: AsyncClient) -> None:
    stored = await async_client.put_attachment(PICTURE)
    assert await async_client.read_attachment(stored.sha256) == PICTURE
    assert await async_client.find_attachments([DIGEST]) == {DIGEST: len(PICTURE)}


def test_bytes_of_another_digest_are_refused(client: Client) -> None:
    with pytest.raises(errors.InvalidFieldError) as refused:
        client.put_attachment(PICTURE, sha256=sha256(b"other").digest())
    assert refused.value.fields.keys() == {"header.sha256"}


def piece(data: bytes, size_bytes: int = 0) -> pb.GetAttachmentResponse:
    return pb.GetAttachmentResponse(data=data, size_bytes=size_bytes)


def test_after_a_lost_connection_only_the_rest_is_asked_for() -> None:
    out = io.BytesIO()
    operation = get_attachment(State(), sha256(b"abcdef").digest(), out)
    answers = [piece(b"abc", 6), LOST, piece(b"def", 6), END]
    driven = Driven(operation, answers)
    assert [(each.offset, each.length) for each in driven.asked] == [(0, 0), (3, 0)]
    assert driven.result == 6
    assert out.getvalue() == b"abcdef"


def test_bytes_that_are_not_those_asked_for_are_told() -> None:
    operation = get_attachment(State(), DIGEST, io.BytesIO())
    with pytest.raises(errors.AttachmentCorruptError):
        Driven(operation, [piece(b"other", 5), END])
