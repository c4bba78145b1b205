"""Writes that take a while: what they begin with, and what they may have come to when cut off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any

from foldlog.v1 import event_pb2, service_pb2

from tests.contract.attachments import digest_of, got, put
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.said import replacing, user

EVENTS, TEXT = 600, "x" * 2_000
PURGED_AT_ONCE = 500
REQUEST_ID = "the-write"


@dataclass(frozen=True)
class LargeWrite:
    """One write, which is made again under its request id.

    `size` tells how much of it there is: none, all of it, or in between one of `stages`.
    """

    write: Callable[[], Any]
    size: Callable[[], int]
    whole: int
    stages: tuple[int, ...] = ()
    log: Calls | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the chain of the session verifies, if there is a session."""
        if self.log is None or not next_seq_of(self.log):
            return True
        return bool(self.log.verify().intact)


def next_seq_of(log: Calls) -> int:
    """Return a session's next_seq as it is listed, 0 if it is not there."""
    request = service_pb2.ListSessionsRequest(page_size=1_000)
    listed = log.stub.ListSessions(request, timeout=DEADLINE_S).sessions
    return sum(each.next_seq for each in listed if each.session_id == log.session_id)


def batch(stub: Any) -> LargeWrite:
    """A batch."""
    log = Calls.create(stub)
    events = [user(TEXT) for _ in range(EVENTS)]
    return LargeWrite(
        lambda: log.append(*events, request_id=REQUEST_ID),
        lambda: len(log.events()),
        EVENTS,
        log=log,
    )


def restore(stub: Any) -> LargeWrite:
    """Events under their original seqs, in two batches of one call."""
    log = Calls.create(stub)
    events = [event_pb2.Event(seq=seq, body=user(TEXT).body) for seq in range(2 * EVENTS)]
    batches = [events[:EVENTS], events[EVENTS:]]
    return LargeWrite(
        lambda: log.restore_batches(batches, request_id=REQUEST_ID),
        lambda: len(log.events()),
        2 * EVENTS,
        log=log,
    )


def import_file(stub: Any) -> LargeWrite:
    """A session from a file."""
    original = Calls.create(stub)
    original.append(*(user(TEXT) for _ in range(EVENTS)))
    data, log = original.export(), original.other(fresh_id())
    return LargeWrite(
        lambda: imported(stub, data, log.session_id, request_id=REQUEST_ID),
        lambda: next_seq_of(log),
        EVENTS,
        log=log,
    )


def snapshot(stub: Any) -> LargeWrite:
    """The purge of history, which goes on in stages once it is decided."""
    log = Calls.create(stub)
    log.append(*(user(TEXT) for _ in range(EVENTS)))
    log.append(replacing(user("summary"), 0, EVENTS - 1))

    def size() -> int:
        assert log.texts() == ["summary"]
        return sum(each.dropped for each in log.events())

    return LargeWrite(
        lambda: log.snapshot(request_id=REQUEST_ID), size, EVENTS, (PURGED_AT_ONCE,), log
    )


def attachment(stub: Any) -> LargeWrite:
    """An attachment of several MiB, in a file beside the database."""
    data = token_bytes(4_000_000)

    def size() -> int:
        request = service_pb2.HeadAttachmentsRequest(sha256=[digest_of(data)])
        if not stub.HeadAttachments(request, timeout=DEADLINE_S).attachments:
            return 0
        return len(got(stub, digest_of(data)))

    return LargeWrite(lambda: put(stub, data).sha256, size, len(data))


KINDS = (batch, restore, import_file, snapshot, attachment)
