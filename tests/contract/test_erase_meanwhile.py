"""Erasing a session that somebody is reading: what is stripped passes neither for damage nor whole.

Streams are begun and not read on, so that most of the log is still to be read when it is erased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from foldlog.v1 import service_pb2

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refused
from tests.contract.said import batches, user
from tests.served import Served

COUNT = 2_000
TEXT = "t" * 5_000


@pytest.fixture(params=["sqlite-file", "postgres"])
def log(serve: Callable[..., Served], request: pytest.FixtureRequest) -> Calls:
    """A log of ten megabytes, of which the service keeps one at most in memory."""
    served = serve(request.param, FOLDLOG_BODY_CACHE_BYTES="1000000")
    log = Calls.create(served.stub)
    for batch in batches([user(f"{i} {TEXT}") for i in range(COUNT)]):
        log.append(*batch)
    served.restart()
    return log


def begun(stream: Iterator[Any]) -> Iterator[Any]:
    """Return the rest of a stream of which one element was read."""
    next(stream)
    return stream


def test_an_export_does_not_end_as_if_it_were_whole(log: Calls) -> None:
    request = service_pb2.ExportSessionRequest(session_id=log.session_id)
    rest = begun(log.stub.ExportSession(request, timeout=DEADLINE_S))
    log.erase()
    with refused("SESSION_DELETED", session_id=log.session_id):
        list(rest)


def test_a_fold_that_is_being_read_is_not_called_damaged(log: Calls) -> None:
    request = service_pb2.GetMessagesRequest(session_id=log.session_id)
    rest = begun(log.stub.GetMessages(request, timeout=DEADLINE_S))
    log.erase()
    with refused("SESSION_DELETED", session_id=log.session_id):
        list(rest)


def test_a_watch_that_is_catching_up_is_told_and_ends(log: Calls) -> None:
    rest = begun(log.watch())
    log.erase()
    kinds = [item.WhichOneof("kind") for item in rest]
    assert kinds[-2:] == ["caught_up", "deleted"]
