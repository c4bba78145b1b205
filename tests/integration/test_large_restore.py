"""A restore at its size, in process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from foldlog.application.decisions import Guard
from foldlog.internal.v1.raw_pb2 import RawEvent
from foldlog.v1.event_pb2 import EventBody
from foldlog.v1.message_pb2 import ROLE_USER, Message

from tests.integration.observed import observed

COUNT = 100_002
BODY = EventBody(message=Message(role=ROLE_USER, text="x")).SerializeToString()


async def _batches() -> AsyncIterator[Sequence[RawEvent]]:
    for start in range(0, COUNT, 1_000):
        yield [RawEvent(seq=seq, body=BODY) for seq in range(start, min(start + 1_000, COUNT))]
    last = RawEvent(seq=COUNT, body=BODY)
    last.replace.start, last.replace.stop = 0, COUNT - 1
    yield [last]


async def test_a_restored_replace_names_all_that_it_shadowed() -> None:
    async with observed("sqlite:///:memory:") as seen:
        await seen.tenant.writing.create("s", "", {}, "")
        await seen.tenant.transfer.restore("s", "", Guard(), _batches())
        page = await seen.tenant.reading.events("s", COUNT, 1)
    assert list(page.events[0].envelope.replace.shadowed_seqs) == list(range(COUNT))
