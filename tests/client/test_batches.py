"""Long appends and seeds go as consecutive batches."""

from __future__ import annotations

import pytest
from foldlog import Appendable, Message, NewEvent, SendLimits, at, errors, replacing, user
from foldlog.client.operations import appending
from foldlog.client.steps import Failure
from foldlog.v1 import service_pb2 as pb

from tests.client.driving import Driven, session

LIMITS = SendLimits(batch_events=2, batch_bytes=100, request_bytes=1_000)
CONFLICT = Failure(errors.SeqConflictError(expected_next_seq=2, next_seq=3))


def appended(first_seq: int, count: int, replaced: int | None = None) -> pb.AppendEventsResponse:
    """Return the answer to a batch, with a replace at an index or none."""
    replaces = [] if replaced is None else [pb.ReplaceResult(index=replaced, seq=first_seq)]
    return pb.AppendEventsResponse(
        first_seq=first_seq, next_seq=first_seq + count, replaces=replaces
    )


def test_a_long_append_is_chained_batches_with_derived_request_ids() -> None:
    events: list[Appendable] = [
        user("a"),
        user("b"),
        user("c"),
        replacing(user("d"), start=0, stop=1),
        user("e"),
    ]
    call = appending.append(session(limits=LIMITS), *events, request_id="r", expected_next_seq=4)
    driven = Driven(call, [appended(4, 2), appended(6, 2, replaced=1), appended(8, 1)])
    assert [len(asked.events) for asked in driven.asked] == [2, 2, 1]
    assert [asked.request_id for asked in driven.asked] == ["r/0", "r/1", "r/2"]
    assert [asked.expected_next_seq for asked in driven.asked] == [4, 6, 8]
    assert (driven.result.first_seq, driven.result.next_seq) == (4, 9)
    assert [replace.index for replace in driven.result.replaces] == [3]


def test_the_first_batch_expects_nothing_if_the_caller_does_not() -> None:
    call = appending.append(session(limits=LIMITS), *[user("a")] * 3)
    driven = Driven(call, [appended(4, 2), appended(6, 1)])
    assert not driven.asked[0].HasField("expected_next_seq")
    assert driven.asked[1].expected_next_seq == 6


def test_batches_are_split_by_size_too() -> None:
    call = appending.append(session(limits=LIMITS), user("x" * 50), user("y" * 50))
    driven = Driven(call, [appended(0, 1), appended(1, 1)])
    assert [len(asked.events) for asked in driven.asked] == [1, 1]
    assert all(asked.events[0].ByteSize() <= LIMITS.batch_bytes for asked in driven.asked)


def test_a_short_append_is_one_batch_under_the_request_id_itself() -> None:
    call = appending.append(session(limits=LIMITS), user("a"), user("b"), request_id="r")
    assert [asked.request_id for asked in Driven(call, [appended(0, 2)]).asked] == ["r"]


def test_an_event_over_the_limit_is_refused_before_earlier_batches_are_sent() -> None:
    call = appending.append(session(limits=LIMITS), user("a"), user("x" * 200))
    with pytest.raises(errors.TooLargeError) as refused:
        Driven(call, [])
    assert (refused.value.field, refused.value.limit) == ("events[1]", 100)


def test_an_event_over_the_limit_that_goes_alone_is_the_services_to_refuse() -> None:
    call = appending.append(session(limits=LIMITS), user("x" * 200))
    assert len(Driven(call, [appended(0, 1)]).asked) == 1


def test_an_event_that_the_service_cannot_receive_is_refused_before_it_is_sent() -> None:
    with pytest.raises(errors.TooLargeError) as refused:
        Driven(appending.append(session(limits=LIMITS), user("x" * 1_000)), [])
    assert refused.value.limit == 1_000


def test_an_append_of_nothing_is_the_services_to_refuse() -> None:
    refused = Failure(errors.InvalidFieldError.of("events", "is empty"))
    with pytest.raises(errors.InvalidFieldError):
        Driven(appending.append(session()), [refused])


def test_validating_needs_a_single_batch() -> None:
    mine = session(limits=LIMITS)
    call = appending.append(mine, *[user("a")] * 3, validate_only=True)
    with pytest.raises(errors.TooLargeError):
        Driven(call, [])


def test_validating_moves_nothing() -> None:
    mine = session()
    Driven(appending.append(mine, user("a"), validate_only=True), [appended(0, 1)])
    assert mine.next_seq is None


def test_a_refused_batch_says_how_many_were_written_before_it() -> None:
    call = appending.append(session(limits=LIMITS), *[user("a")] * 3)
    with pytest.raises(errors.SeqConflictError) as refused:
        Driven(call, [appended(0, 2), CONFLICT])
    assert refused.value.__notes__ == ["1 of 2 batches were written before"]


def test_the_writer_epoch_goes_with_each_batch() -> None:
    mine = session(limits=LIMITS)
    mine.writer_epoch = 3
    driven = Driven(appending.append(mine, *[user("a")] * 3), [appended(0, 2), appended(2, 1)])
    assert [asked.writer_epoch for asked in driven.asked] == [3, 3]


def test_a_long_seed_is_split_alike_and_keeps_times() -> None:
    mine = session(limits=LIMITS)
    messages: list[Message | NewEvent] = [user("a"), at(user("b"), 1_000_000_002), user("c")]
    answers = [
        pb.SeedSessionResponse(first_seq=0, next_seq=2),
        pb.SeedSessionResponse(first_seq=2, next_seq=3),
    ]
    driven = Driven(appending.seed(mine, messages, request_id="r"), answers)
    assert [asked.request_id for asked in driven.asked] == ["r/0", "r/1"]
    assert driven.asked[0].messages[1].create_time.nanos == 2
    assert not driven.asked[0].messages[0].HasField("create_time")
    assert (driven.result.first_seq, driven.result.next_seq, mine.next_seq) == (0, 3, 3)
