"""Appending: numbering, atomicity, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from foldlog.v1 import event_pb2, message_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.contract.attachments import put
from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    bookkeeping,
    custom,
    event,
    header,
    message,
    result,
    system,
    turn_end,
    turn_start,
    user,
    user_message,
)

T = event_pb2.EventType


def test_seqs_follow_one_another_from_zero(log: Calls) -> None:
    first = log.append(user("a"), user("b"))
    second = log.append(user("c"))
    assert (first.first_seq, first.next_seq) == (0, 2)
    assert (second.first_seq, second.next_seq) == (2, 3)
    assert [each.seq for each in log.events()] == [0, 1, 2]


def test_every_type_is_stored_and_only_surface_types_project(log: Calls) -> None:
    log.append(
        system("s"),
        turn_start(1),
        bookkeeping(step_start=event_pb2.StepStart(number=1, reason="r")),
        header(model="m"),
        user("u"),
        assistant("", "c1"),
        bookkeeping(
            tool_call=event_pb2.ToolCallState(
                id="c1", phase=event_pb2.TOOL_CALL_PHASE_DISPATCHED, idempotency_key="k"
            )
        ),
        result("r", "c1"),
        bookkeeping(step_end=event_pb2.StepEnd(usage=event_pb2.Usage(cache_read_tokens=2**64 - 1))),
        turn_end(1),
        custom("k", b"\0\xff", "key"),
    )
    events = log.events()
    assert [each.type for each in events] == [
        *(T.EVENT_TYPE_SYSTEM_MESSAGE, T.EVENT_TYPE_TURN_START, T.EVENT_TYPE_STEP_START),
        *(T.EVENT_TYPE_REQUEST_HEADER, T.EVENT_TYPE_USER_MESSAGE, T.EVENT_TYPE_ASSISTANT_MESSAGE),
        *(T.EVENT_TYPE_TOOL_CALL, T.EVENT_TYPE_TOOL_RESULT, T.EVENT_TYPE_STEP_END),
        *(T.EVENT_TYPE_TURN_END, T.EVENT_TYPE_CUSTOM),
    ]
    assert log.surface() == [0, 4, 5, 7]
    assert events[8].body.step_end.usage.cache_read_tokens == 2**64 - 1
    assert events[10].body.custom.payload == b"\0\xff"
    assert [each.HasField("position") for each in events] == [
        each.seq in {0, 4, 5, 7} for each in events
    ]


def test_a_message_comes_back_field_for_field(log: Calls) -> None:
    nothing = put(log.stub, b"")
    parts = message_pb2.PartList(
        parts=[
            message_pb2.Part(text="t"),
            message_pb2.Part(
                attachment=message_pb2.AttachmentRef(
                    sha256=nothing.sha256, media_type="image/png", name="", size_bytes=0
                )
            ),
            message_pb2.Part(reasoning=message_pb2.Reasoning(text="")),
            message_pb2.Part(reasoning=message_pb2.Reasoning(json='{"sig": "x"}')),
            message_pb2.Part(tool_call_index=0),
            message_pb2.Part(opaque=message_pb2.OpaquePart(kind="k", json='{"b":1,  "a":1.0}')),
        ]
    )
    said = message_pb2.Message(
        role=message_pb2.ROLE_ASSISTANT,
        parts=parts,
        tool_calls=[message_pb2.ToolCall(), message_pb2.ToolCall(id="", arguments="not json")],
        tool_call_id="",
        name="",
        reasoning="",
        metadata_json='{"z":12345678901234567890123,"a":1e0}',
    )
    body = event_pb2.EventBody(message=said, group="g", extra_json="[1.0, 1]")
    log.append(event_pb2.NewEvent(body=body))
    assert log.events()[0].body == body
    folded = log.fold()[0]
    assert folded.message == said
    assert folded.group == "g"


@pytest.mark.parametrize(
    "said",
    [
        message("user"),
        message("user", ""),
        message_pb2.Message(role=message_pb2.ROLE_USER, parts=message_pb2.PartList()),
        message("tool", "x", tool_call_id=""),
        message("user", "\0"),
        message("user", "\U0010ffff\ufffe\u2028"),
    ],
    ids=["none", "empty", "no parts", "empty id", "nul", "odd"],
)
def test_absence_and_emptiness_are_kept_apart(log: Calls, said: message_pb2.Message) -> None:
    log.append(event(said))
    assert log.messages() == [said]


@pytest.mark.parametrize(
    ("seconds", "nanos"),
    [(0, 1), (-62_135_596_800, 0), (253_402_300_799, 999_999_999), (-1, 999_999_999)],
    ids=["first nanosecond", "year 1", "year 9999", "before 1970"],
)
def test_a_given_time_is_kept_to_the_nanosecond(log: Calls, seconds: int, nanos: int) -> None:
    time = Timestamp(seconds=seconds, nanos=nanos)
    log.append(user("a"), user("b", time))
    assert log.fold()[1].time == time
    assert log.events()[1].time == time
    assert log.fold()[0].time.seconds > 1_600_000_000


BAD_EVENTS: dict[str, tuple[event_pb2.NewEvent, str]] = {
    "no body": (event_pb2.NewEvent(), "body"),
    "no kind": (event_pb2.NewEvent(body=event_pb2.EventBody(group="g")), "body"),
    "no role": (event(message_pb2.Message(text="x")), "body.message.role"),
    "unknown role": (event(message_pb2.Message(role=9, text="x")), "body.message.role"),  # type: ignore[arg-type]
    "result without id": (event(message("tool", "r")), "body.message.tool_call_id"),
    "metadata": (user("x", metadata_json="{'a':1}"), "body.message.metadata_json"),
    "NaN": (user("x", metadata_json="[NaN]"), "body.message.metadata_json"),
    "Infinity": (user("x", metadata_json="-Infinity"), "body.message.metadata_json"),
    "duplicate key": (user("x", metadata_json='{"a":1,"\\u0061":2}'), "body.message.metadata_json"),
    "lone surrogate": (user("x", metadata_json='"\\udc00"'), "body.message.metadata_json"),
    "deep": (user("x", metadata_json="[" * 129 + "]" * 129), "body.message.metadata_json"),
    "part without kind": (
        event(
            message_pb2.Message(
                role=message_pb2.ROLE_USER, parts=message_pb2.PartList(parts=[message_pb2.Part()])
            )
        ),
        "body.message.",
    ),
    "opaque json": (
        event(
            message_pb2.Message(
                role=message_pb2.ROLE_USER,
                parts=message_pb2.PartList(
                    parts=[message_pb2.Part(opaque=message_pb2.OpaquePart(kind="k", json="{"))]
                ),
            )
        ),
        "body.message.",
    ),
    "digest": (
        event(
            message_pb2.Message(
                role=message_pb2.ROLE_USER,
                parts=message_pb2.PartList(
                    parts=[
                        message_pb2.Part(
                            attachment=message_pb2.AttachmentRef(sha256=b"x", media_type="a/b")
                        )
                    ]
                ),
            )
        ),
        "body.message.",
    ),
    "extra": (
        event_pb2.NewEvent(
            body=event_pb2.EventBody(turn_start=event_pb2.TurnStart(), extra_json="x")
        ),
        "body.extra_json",
    ),
    "parameters": (header(parameters_json="[1]"), "body.request_header.parameters_json"),
    "tools": (header(tools_json=["{}", "{"]), "body.request_header.tools_json"),
    "rewind": (bookkeeping(rewind=event_pb2.Rewind(to_seq=0)), "body.rewind"),
    "custom without kind": (custom(""), "body.custom.kind"),
    "nine keys": (custom("k", b"", *map(str, range(9))), "body.custom.keys"),
    "time": (
        event_pb2.NewEvent(body=user("x").body, time=Timestamp(seconds=253_402_300_800)),
        "time",
    ),
    "nanos": (event_pb2.NewEvent(body=user("x").body, time=Timestamp(nanos=-1)), "time"),
    "replace on bookkeeping": (
        event_pb2.NewEvent(
            body=turn_start().body,
            replace=event_pb2.Replace(positions=event_pb2.PositionRange(start=0, stop=0)),
        ),
        "replace",
    ),
    "replace without range": (
        event_pb2.NewEvent(body=user("x").body, replace=event_pb2.Replace()),
        "replace",
    ),
}


@pytest.mark.parametrize(("bad", "path"), BAD_EVENTS.values(), ids=BAD_EVENTS)
def test_a_bad_event_is_refused_by_index_and_field_and_nothing_is_stored(
    log: Calls, bad: event_pb2.NewEvent, path: str
) -> None:
    with refused("INVALID_FIELD") as told:
        log.append(user("good"), bad, user("good"))
    assert told.fields
    assert all(field.startswith(f"events[1].{path}") for field in told.fields), told.fields
    assert log.events() == []
    assert log.append(user("next")).first_seq == 0


def test_a_key_over_its_length_is_refused(log: Calls) -> None:
    with refused("TOO_LARGE", size=130, limit=128) as told:
        log.append(user("a"), custom("k", b"", "é" * 65))
    assert told.facts["field"].startswith("events[1].body.custom.keys")


def test_an_empty_batch_is_refused(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        log.append()
    assert list(told.fields or {}) == ["events"]


def test_json_of_the_greatest_depth_is_kept(log: Calls) -> None:
    deep = "[" * 128 + "]" * 128
    log.append(user("x", metadata_json=deep))
    assert log.messages()[0].metadata_json == deep


@pytest.mark.parametrize(
    "text", ["1", '"\\ud83d\\udd25"', " {} ", '{"a":{"a":[{"a":1}]}}', "1E400", '"\\u0000"', "-0.0"]
)
def test_any_lossless_json_is_kept_byte_for_byte(log: Calls, text: str) -> None:
    log.append(user("x", metadata_json=text))
    assert log.messages()[0].metadata_json == text


def test_arguments_are_the_models_own_text(log: Calls) -> None:
    texts = ["", "{", "NaN", '{ "b":1, "a":2, "a":3 }', "\0", "1.0"]
    calls = [message_pb2.ToolCall(id=str(i), arguments=text) for i, text in enumerate(texts)]
    log.append(event(message("assistant", "", tool_calls=calls)))
    assert [each.arguments for each in log.messages()[0].tool_calls] == texts


def test_a_lost_race_names_both_numbers(log: Calls) -> None:
    log.append(user("a"), expected_next_seq=0)
    with refused("SEQ_CONFLICT", expected_next_seq=0, next_seq=1):
        log.append(user("b"), expected_next_seq=0)
    with refused("SEQ_CONFLICT", expected_next_seq=5, next_seq=1):
        log.append(user("b"), expected_next_seq=5)
    assert log.append(user("b"), expected_next_seq=1).first_seq == 1


def test_validate_only_answers_as_if_and_writes_nothing(log: Calls) -> None:
    log.append(user("a"))
    answer = log.append(user("b"), user("c"), validate_only=True)
    assert (answer.first_seq, answer.next_seq) == (1, 3)
    assert log.get().next_seq == 1
    with refused("INVALID_FIELD"):
        log.append(event_pb2.NewEvent(), validate_only=True)
    with refused("SEQ_CONFLICT"):
        log.append(user("b"), validate_only=True, expected_next_seq=0)
    assert log.texts() == ["a"]


def test_validate_only_leaves_its_request_id_free(log: Calls) -> None:
    log.append(user("a"), validate_only=True, request_id="r")
    assert log.append(user("a"), request_id="r").first_seq == 0
    assert log.get().next_seq == 1


def test_fields_of_a_newer_release_come_back(log: Calls) -> None:
    body = event_pb2.EventBody(message=user_message("known"))
    unknown = b"\xfa\x3e\x05newer"
    newer = event_pb2.EventBody.FromString(body.SerializeToString() + unknown)
    log.append(event_pb2.NewEvent(body=newer))
    assert log.events()[0].body.SerializeToString() == newer.SerializeToString()
    child = log.fork()
    assert child.events()[0].body.SerializeToString() == newer.SerializeToString()


def test_unknown_fields_of_a_message_come_back_in_the_fold(log: Calls) -> None:
    said = user_message("known").SerializeToString() + b"\xfa\x3e\x05newer"
    newer = message_pb2.Message.FromString(said)
    log.append(event(newer))
    assert log.messages()[0].SerializeToString() == said


def test_the_state_of_turns_is_told(log: Calls) -> None:
    log.append(user("a"), turn_start(), turn_start())
    assert log.get().open_turn_seq == 2
    log.append(turn_end())
    assert log.get().open_turn_seq == 1
    log.append(turn_end(), turn_end())
    assert not log.get().HasField("open_turn_seq")


def test_many_clients_append_without_gap_or_loss(log: Calls) -> None:
    futures = [
        log.stub.AppendEvents.future(log.append_request(user(f"{i}-{j}"), user("+")))
        for i in range(10)
        for j in range(20)
    ]
    firsts: list[Any] = [each.result(60).first_seq for each in futures]
    assert sorted(firsts) == list(range(0, 400, 2))
    texts = log.texts()
    assert sorted(texts[0::2]) == sorted(f"{i}-{j}" for i in range(10) for j in range(20))
    assert set(texts[1::2]) == {"+"}
