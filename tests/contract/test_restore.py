"""Restoring events under their original seqs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from foldlog.v1 import event_pb2, service_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import result, system_message, turn_start, user, user_message

NewLog = Callable[..., Calls]


def stored(seq: int, text: str = "x", **fields: object) -> event_pb2.Event:
    """Return a user message's event under a seq."""
    body = event_pb2.EventBody(message=user_message(text))
    return event_pb2.Event(seq=seq, body=body, **fields)  # type: ignore[arg-type]


def replaced(seq: int, start: int, stop: int) -> event_pb2.Event:
    """Return a replace's event under a seq."""
    body = event_pb2.EventBody(message=system_message("S"))
    return event_pb2.Event(
        seq=seq, body=body, replace=event_pb2.AppliedReplace(start=start, stop=stop)
    )


def test_seqs_are_kept_and_gaps_stay(log: Calls) -> None:
    answer = log.restore(stored(0, "a"), stored(7, "b"))
    assert (answer.count, answer.next_seq) == (2, 8)
    assert log.append(user("c")).first_seq == 8
    assert log.surface() == [0, 7, 8]
    assert [each.seq for each in log.events()] == [0, 7, 8]
    assert [each.seq for each in log.events(3)] == [7, 8]


def test_a_seq_behind_the_head_is_refused_and_nothing_is_stored(log: Calls) -> None:
    log.append(user("a"), user("b"))
    with refused("SEQ_BEHIND_HEAD", seq=1, next_seq=2):
        log.restore(stored(1))
    assert log.get().next_seq == 2


@pytest.mark.parametrize("seqs", [(3, 5, 4), (3, 3)])
def test_seqs_that_do_not_ascend_are_refused(log: Calls, seqs: tuple[int, ...]) -> None:
    for batches in ([[stored(seq) for seq in seqs]], [[stored(seq)] for seq in seqs]):
        with refused("INVALID_FIELD") as told:
            log.restore_batches(batches)
        assert list(told.fields or {}) == [f"events[{len(seqs) - 1}].seq"]
    assert log.get().next_seq == 0


def test_a_failure_in_the_last_batch_stores_nothing_of_the_first(log: Calls) -> None:
    bad = event_pb2.Event(seq=5, body=event_pb2.EventBody())
    with refused("INVALID_FIELD"):
        log.restore_batches([[stored(0), stored(1)], [stored(2), bad]])
    assert log.events() == []
    assert log.append(user("x")).first_seq == 0


def test_many_batches_are_one_write(log: Calls) -> None:
    answer = log.restore_batches([[stored(2 * i)] for i in range(50)])
    assert (answer.count, answer.next_seq) == (50, 99)
    assert log.surface() == list(range(0, 100, 2))


def test_a_replace_whose_targets_are_gone_is_accepted(log: Calls) -> None:
    log.restore(stored(2, "c"), replaced(3, 0, 1))
    assert [(each.seq, each.position) for each in log.fold()] == [(3, 0), (2, 2)]


def test_a_replace_shadows_what_is_there(log: Calls) -> None:
    log.restore(*(stored(i) for i in range(4)), replaced(6, 1, 2))
    assert log.surface() == [0, 6, 3]
    assert log.events()[1].state_seq == 6


@pytest.mark.parametrize(("start", "stop"), [(2, 1), (-1, 0), (3, 3), (0, 9)])
def test_a_malformed_range_is_refused(log: Calls, start: int, stop: int) -> None:
    with refused("INVALID_FIELD"):
        log.restore(stored(0), replaced(3, start, stop))
    assert log.get().next_seq == 0


def test_a_rewind_is_accepted(log: Calls) -> None:
    rewind = event_pb2.EventBody(rewind=event_pb2.Rewind(to_seq=0))
    log.restore(stored(0, "a"), stored(1, "b"), event_pb2.Event(seq=2, body=rewind), stored(3, "c"))
    assert log.texts() == ["a", "c"]


def test_time_and_body_are_kept(log: Calls) -> None:
    time = Timestamp(seconds=-1, nanos=999_999_999)
    body = event_pb2.EventBody(message=user_message("x"), group="g", extra_json="1.0")
    log.restore(event_pb2.Event(seq=3, body=body, time=time))
    (event,) = log.events()
    assert (event.body, event.time, event.seq) == (body, time, 3)


def test_tombstones_can_be_restored(log: Calls, new_log: NewLog) -> None:
    log.append(user("a"), user("b"))
    log.append(_summary())
    log.snapshot()
    copy = new_log()
    copy.restore(*log.events())
    assert copy.fold() == log.fold()
    assert [each.dropped for each in copy.events()] == [True, True, False]
    with refused("HISTORY_DROPPED"):
        copy.fold(1)


def _summary() -> event_pb2.NewEvent:
    body = event_pb2.EventBody(message=system_message("S"))
    positions = event_pb2.PositionRange(start=0, stop=1)
    return event_pb2.NewEvent(body=body, replace=event_pb2.Replace(positions=positions))


def test_bad_events_are_named(log: Calls) -> None:
    body = result("r", "c").body
    body.message.ClearField("tool_call_id")
    with refused("INVALID_FIELD") as told:
        log.restore(stored(0), event_pb2.Event(seq=1, body=body))
    assert any("events[1]" in field and "tool_call_id" in field for field in told.fields or {})


def test_a_lost_race_is_refused(log: Calls) -> None:
    log.append(user("a"))
    with refused("SEQ_CONFLICT", expected_next_seq=0, next_seq=1):
        log.restore(stored(5), expected_next_seq=0)
    assert log.restore(stored(5), expected_next_seq=1).next_seq == 6


def test_a_retry_gives_the_first_answer(log: Calls) -> None:
    first = log.restore(stored(3, "a"), stored(5, "b"), request_id="r")
    assert log.restore(stored(3, "a"), stored(5, "b"), request_id="r") == first
    assert log.get().next_seq == 6
    with refused("REQUEST_ID_REUSED", request_id="r"):
        log.restore(stored(3, "a"), stored(5, "other"), request_id="r")


def test_the_request_ids_of_the_original_are_kept(log: Calls, new_log: NewLog) -> None:
    log.append(user("a"), user("b"), request_id="first")
    log.append(user("c"), request_id="second")
    copy = new_log()
    copy.restore(*log.events())
    assert [each.request_id for each in copy.events()] == ["first", "", "second"]


def test_the_header_comes_first(log: Calls) -> None:
    batch = service_pb2.RestoreEventsRequest(batch=service_pb2.RestoreBatch(events=[stored(0)]))
    head = service_pb2.RestoreEventsRequest(
        header=service_pb2.RestoreHeader(session_id=log.session_id)
    )
    for elements in (
        [],
        [batch],
        [batch, head],
        [head, head],
        [service_pb2.RestoreEventsRequest()],
    ):
        with refused("INVALID_FIELD"):
            log.stub.RestoreEvents(iter(elements))


def test_turns_are_followed_through_a_restore(log: Calls) -> None:
    log.restore(event_pb2.Event(seq=4, body=turn_start().body))
    assert log.get().open_turn_seq == 4
