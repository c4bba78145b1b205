"""Trims: a tool result in place of another, nothing but the content changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from foldlog.v1 import event_pb2, message_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import assistant, replacing, replacing_entries, result, turn_start, user

Address = Callable[[event_pb2.NewEvent, int], event_pb2.NewEvent]


def by_position(new: event_pb2.NewEvent, at: int) -> event_pb2.NewEvent:
    """Return the event as a trim of what stands at a position."""
    new = replacing(new, at, at)
    new.replace.trim = True
    return new


def by_entry(new: event_pb2.NewEvent, seq: int) -> event_pb2.NewEvent:
    """Return the event as a trim of a live entry."""
    new = replacing_entries(new, seq, seq)
    new.replace.trim = True
    return new


def in_group(group: str, new: event_pb2.NewEvent) -> event_pb2.NewEvent:
    """Return the event as one of a group."""
    new.body.group = group
    return new


@pytest.fixture(params=[by_position, by_entry], ids=["positions", "entries"])
def trim(request: pytest.FixtureRequest) -> Address:
    """Address what is trimmed."""
    address: Address = request.param
    return address


@pytest.fixture
def called(log: Calls) -> Calls:
    """A session with a long result."""
    log.append(assistant("", "c"), result("long " * 100, "c", name="f"), user("u"))
    return log


def test_a_trim_keeps_all_but_the_content(called: Calls, trim: Address) -> None:
    answer = called.append(trim(result("short", "c", name="f"), 1), require_balanced=True)
    assert list(answer.replaces[0].shadowed_seqs) == [1]
    assert called.texts() == ["", "short", "u"]
    assert called.surface() == [0, 3, 2]


def test_a_trim_can_be_trimmed_again(called: Calls) -> None:
    called.append(by_entry(result("shorter", "c", name="f"), 1))
    called.append(by_entry(result("short", "c", name="f"), 3))
    called.append(by_position(result("s", "c", name="f"), 1))
    assert called.texts() == ["", "s", "u"]


def test_a_trim_stays_in_its_group(log: Calls, trim: Address) -> None:
    log.append(assistant("", "c"), in_group("g", result("long", "c")))
    with refused("INVALID_FIELD") as told:
        log.append(trim(result("s", "c"), 1))
    assert list(told.fields or {}) == ["events[0].body.group"]
    log.append(trim(in_group("g", result("s", "c")), 1))
    assert [each.group for each in log.fold()] == ["", "g"]


@pytest.mark.parametrize(
    ("new", "field"),
    [
        (result("s", "d", name="f"), "body.message.tool_call_id"),
        (result("s", "c", name="g"), "body.message.name"),
        (result("s", "c"), "body.message.name"),
        (result("s", "c", name="f", metadata_json="{}"), "body.message.metadata_json"),
        (result("s", "c", name="f", reasoning="r"), "body.message.reasoning"),
        (in_group("g", result("s", "c", name="f")), "body.group"),
        (user("s"), "replace.trim"),
    ],
    ids=["another call", "another tool", "no tool", "metadata", "reasoning", "group", "no result"],
)
def test_what_differs_is_named(
    called: Calls, trim: Address, new: event_pb2.NewEvent, field: str
) -> None:
    made = event_pb2.NewEvent()
    made.CopyFrom(new)
    with refused("INVALID_FIELD") as told:
        called.append(trim(made, 1))
    assert list(told.fields or {}) == [f"events[0].{field}"]
    assert called.surface() == [0, 1, 2]


def test_only_a_result_is_trimmed(called: Calls, trim: Address) -> None:
    for at in (0, 2):
        with refused("INVALID_FIELD") as told:
            called.append(trim(result("s", "c", name="f"), at))
        assert list(told.fields or {}) == ["events[0].replace.trim"]


def test_exactly_one_is_trimmed(log: Calls) -> None:
    log.append(assistant("", "c"), turn_start(), result("1", "c"), result("2", "c"))
    for start, stop in ((2, 3), (0, 2)):
        new = replacing(result("s", "c"), start, stop)
        new.replace.trim = True
        with refused("INVALID_FIELD") as told:
            log.append(new)
        assert list(told.fields or {}) == ["events[0].replace.trim"]
    empty = replacing(result("s", "c"), 1, 1, allow_empty=True)
    empty.replace.trim = True
    with refused("INVALID_FIELD"):
        log.append(empty)
    wide = replacing(result("s", "c"), 1, 2)
    wide.replace.trim = True
    log.append(wide)
    assert log.surface() == [0, 4, 3]


def test_a_result_of_the_same_batch_is_trimmed(log: Calls) -> None:
    log.append(assistant("", "c"))
    log.append(result("long", "c"), by_position(result("short", "c"), 1))
    assert log.surface() == [0, 2]
    with refused("INVALID_FIELD") as told:
        log.append(user("u"), by_position(result("s", "c", name="f"), 1))
    assert list(told.fields or {}) == ["events[1].body.message.name"]


def test_parts_and_attachments_may_come_and_go(called: Calls, trim: Address) -> None:
    parts = message_pb2.PartList(parts=[message_pb2.Part(text="a"), message_pb2.Part(text="b")])
    said = message_pb2.Message(role=message_pb2.ROLE_TOOL, tool_call_id="c", name="f", parts=parts)
    new = event_pb2.NewEvent(body=event_pb2.EventBody(message=said))
    called.append(trim(new, 1))
    assert len(called.messages()[1].parts.parts) == 2


def test_a_fork_trims_what_its_parent_wrote(called: Calls) -> None:
    child = called.fork()
    child.append(by_entry(result("short", "c", name="f"), 1))
    assert child.texts() == ["", "short", "u"]
    assert called.surface() == [0, 1, 2]


def test_refusals_that_come_first_come_first(called: Calls) -> None:
    with refused("ENTRY_NOT_LIVE", seq=9):
        called.append(by_entry(result("s", "c", name="f"), 9))
    with refused("SEQ_CONFLICT"):
        called.append(by_entry(result("s", "d"), 1), expected_next_seq=1)
    with refused("SESSION_NOT_FOUND"):
        called.other("no-such-session").append(by_entry(result("s", "c"), 1))


def test_of_several_faults_the_first_is_told(called: Calls) -> None:
    trims = [by_entry(result(text, "c", name="f"), 1) for text in ("good", "stale")]
    with refused("ENTRY_NOT_LIVE", seq=1):
        called.append(*trims)
    wrong = by_entry(result("s", "d", name="f"), 1)
    with refused("INVALID_FIELD") as told:
        called.append(wrong, trims[0])
    assert list(told.fields or {}) == ["events[0].body.message.tool_call_id"]
    assert called.surface() == [0, 1, 2]


def test_a_trim_is_answered_once(called: Calls, trim: Address) -> None:
    def append(text: str) -> Any:
        return called.append(trim(result(text, "c", name="f"), 1), request_id="r")

    assert append("short") == append("short")
    with refused("REQUEST_ID_REUSED"):
        append("other")
    assert called.surface() == [0, 3, 2]


def test_validate_only_judges_a_trim(called: Calls, trim: Address) -> None:
    called.append(trim(result("short", "c", name="f"), 1), validate_only=True)
    with refused("INVALID_FIELD"):
        called.append(trim(result("short", "d", name="f"), 1), validate_only=True)
    assert called.surface() == [0, 1, 2]
