"""Seeding a session from a flat list of messages."""

from __future__ import annotations

import pytest
from foldlog.v1 import message_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant_message,
    system_message,
    tool_message,
    user,
    user_message,
)


def test_each_message_becomes_an_event_at_its_own_time(log: Calls) -> None:
    times = [Timestamp(seconds=30), Timestamp(seconds=10, nanos=7), Timestamp(seconds=20)]
    messages = [
        system_message("s", create_time=times[0]),
        assistant_message("", "c1", reasoning="", create_time=times[1]),
        tool_message("r", "c1", name="f", metadata_json="[1.0]", create_time=times[2]),
    ]
    answer = log.seed(*messages)
    assert (answer.first_seq, answer.next_seq) == (0, 3)
    assert log.messages() == messages
    assert [each.time for each in log.fold()] == times
    assert [each.time for each in log.events()] == times


def test_a_message_without_a_time_gets_the_servers(log: Calls) -> None:
    log.seed(user_message("a"))
    assert log.fold()[0].time.seconds > 1_600_000_000


def test_every_field_of_every_role_is_kept(log: Calls) -> None:
    messages = [
        message_pb2.Message(
            role=role,
            text="t",
            tool_calls=[message_pb2.ToolCall(id="x")],
            tool_call_id="y",
            name="n",
            reasoning="r",
            metadata_json="{}",
        )
        for role in (message_pb2.ROLE_SYSTEM, message_pb2.ROLE_USER, message_pb2.ROLE_TOOL)
    ]
    log.seed(*messages)
    assert log.messages() == messages


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (message_pb2.Message(text="x"), "messages[1].role"),
        (message_pb2.Message.FromString(b"\x08\x09"), "messages[1].role"),
        (message_pb2.Message(role=message_pb2.ROLE_TOOL, text="x"), "messages[1].tool_call_id"),
        (user_message("x", metadata_json="{"), "messages[1].metadata_json"),
        (user_message("x", create_time=Timestamp(nanos=-5)), "messages[1].create_time"),
    ],
    ids=["no role", "unknown role", "no id", "metadata", "time"],
)
def test_a_bad_message_is_named_and_nothing_is_stored(
    log: Calls, bad: message_pb2.Message, field: str
) -> None:
    with refused("INVALID_FIELD") as told:
        log.seed(user_message("a"), bad)
    assert list(told.fields or {}) == [field]
    assert log.get().next_seq == 0


def test_an_empty_list_is_refused(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        log.seed()
    assert list(told.fields or {}) == ["messages"]


def test_more_messages_than_a_batch_holds_are_refused(log: Calls) -> None:
    with refused("TOO_LARGE", size=1001, limit=1000):
        log.seed(*(user_message("x") for _ in range(1001)))
    log.seed(*(user_message("x") for _ in range(1000)))
    assert log.get().next_seq == 1000


def test_a_seed_adds_to_what_is_there(log: Calls) -> None:
    log.append(user("a"))
    assert log.seed(user_message("b"), expected_next_seq=1).first_seq == 1
    with refused("SEQ_CONFLICT"):
        log.seed(user_message("c"), expected_next_seq=1)
    assert log.texts() == ["a", "b"]


def test_a_retry_gives_the_first_answer(log: Calls) -> None:
    first = log.seed(user_message("a"), user_message("b"), request_id="r")
    assert log.seed(user_message("a"), user_message("b"), request_id="r") == first
    with refused("REQUEST_ID_REUSED"):
        log.seed(user_message("a"), request_id="r")
    assert log.get().next_seq == 2
