"""Writer epochs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import user, user_message

WRITES: dict[str, Callable[..., object]] = {
    "append": lambda log, **fields: log.append(user("x"), **fields),
    "seed": lambda log, **fields: log.seed(user_message("x"), **fields),
    "rewind": lambda log, **fields: log.rewind(0, **fields),
    "restore": lambda log, **fields: log.restore(
        event_pb2.Event(seq=99, body=user("x").body), **fields
    ),
}


def test_before_the_first_epoch_none_is_needed(log: Calls) -> None:
    log.append(user("a"))
    assert log.get().writer_epoch == 0


def test_epochs_count_up_and_take_over(log: Calls) -> None:
    assert log.open_writer(owner="a").writer_epoch == 1
    assert log.get().writer_epoch == 1
    answer = log.open_writer(owner="b")
    assert (answer.writer_epoch, answer.next_seq) == (2, 0)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_needs_the_current_epoch(log: Calls, write: Callable[..., object]) -> None:
    log.append(user("a"))
    log.open_writer()
    epoch = log.open_writer().writer_epoch
    with refused("WRITER_EPOCH_REQUIRED", current_epoch=epoch):
        write(log)
    with refused("STALE_WRITER", writer_epoch=epoch - 1, current_epoch=epoch):
        write(log, writer_epoch=epoch - 1)
    with refused("STALE_WRITER", writer_epoch=epoch + 5, current_epoch=epoch):
        write(log, writer_epoch=epoch + 5)
    assert log.get().next_seq == 1
    write(log, writer_epoch=epoch)
    assert log.get().next_seq > 1


def test_an_epoch_where_none_is_in_force_is_stale(log: Calls) -> None:
    with refused("STALE_WRITER", writer_epoch=1, current_epoch=0):
        log.append(user("a"), writer_epoch=1)


def test_closing_lifts_the_epoch(log: Calls) -> None:
    epoch = log.open_writer().writer_epoch
    log.close_writer(epoch)
    log.append(user("a"))
    assert log.get().writer_epoch == 0
    with refused("STALE_WRITER"):
        log.append(user("b"), writer_epoch=epoch)
    assert log.open_writer().writer_epoch == epoch + 1


def test_only_the_current_epoch_can_be_closed(log: Calls) -> None:
    with refused("STALE_WRITER"):
        log.close_writer(1)
    old = log.open_writer().writer_epoch
    new = log.open_writer().writer_epoch
    with refused("STALE_WRITER", writer_epoch=old, current_epoch=new):
        log.close_writer(old)
    assert log.get().writer_epoch == new


def test_an_expected_epoch_makes_a_takeover_conditional(log: Calls) -> None:
    first = log.open_writer(expected_epoch=0).writer_epoch
    with refused("STALE_WRITER", writer_epoch=0, current_epoch=first):
        log.open_writer(expected_epoch=0)
    assert log.open_writer(expected_epoch=first).writer_epoch == first + 1


def test_labels_forks_snapshots_and_deletion_need_none(log: Calls) -> None:
    log.append(user("a"))
    log.open_writer()
    log.update(set_labels={"a": "1"})
    log.snapshot()
    log.fork()
    log.delete()


def test_a_retry_of_an_opening_gives_the_first_epoch(log: Calls) -> None:
    first = log.open_writer(request_id="r", owner="a")
    assert log.open_writer(request_id="r", owner="a") == first
    assert log.get().writer_epoch == first.writer_epoch
    with refused("REQUEST_ID_REUSED"):
        log.open_writer(request_id="r", owner="b")


def test_a_retry_of_a_closing_gives_the_first_answer(log: Calls) -> None:
    epoch = log.open_writer().writer_epoch
    first = log.close_writer(epoch, request_id="r")
    assert log.close_writer(epoch, request_id="r") == first


def test_a_retry_is_looked_up_before_the_epoch(log: Calls) -> None:
    old = log.open_writer().writer_epoch
    first = log.append(user("a"), writer_epoch=old, request_id="r")
    log.open_writer()
    assert log.append(user("a"), writer_epoch=old, request_id="r") == first
    with refused("STALE_WRITER"):
        log.append(user("b"), writer_epoch=old, request_id="s")


def test_an_owner_that_is_too_long_is_refused(log: Calls) -> None:
    with refused("TOO_LARGE", size=257, limit=256):
        log.open_writer(owner="x" * 257)
