"""The folded request header."""

from __future__ import annotations

from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import header, replacing, system, user


def test_the_latest_header_counts_wholesale(log: Calls) -> None:
    log.append(header(provider="p", model="m1", system_prompt="s"), user("u"), header(model="m2"))
    answer = log.header_answer()
    assert answer.header == event_pb2.RequestHeader(model="m2")
    assert (answer.seq, answer.next_seq) == (2, 3)


def test_a_header_is_kept_byte_for_byte(log: Calls) -> None:
    sent = event_pb2.RequestHeader(
        provider="p",
        model="m",
        parameters_json='{ "z":1, "a":1.0, "big":12345678901234567890 }',
        system_prompt="s\0",
        tools_json=['{"b":{"z":1,"a":2}}', ' { "a":1e0 } '],
        reason=event_pb2.HEADER_REASON_INITIAL,
        reasoning_effort="high",
    )
    log.append(event_pb2.NewEvent(body=event_pb2.EventBody(request_header=sent)))
    assert log.header_answer().header == sent
    assert log.fork().header_answer().header == sent


def test_a_header_at_a_seq(log: Calls) -> None:
    log.append(user("u"), header(model="m1"), user("v"), header(model="m2"))
    assert [log.header_answer(seq).header.model for seq in (1, 2, 3)] == ["m1", "m1", "m2"]
    assert log.header_answer(2).next_seq == 3
    with refused("HEADER_MISSING"):
        log.header_answer(0)
    with refused("SEQ_BEYOND_HEAD"):
        log.header_answer(4)


def test_a_log_without_a_header_says_so(log: Calls) -> None:
    with refused("HEADER_MISSING", session_id=log.session_id):
        log.header_answer()


def test_a_header_outlives_a_compaction_and_a_snapshot(log: Calls) -> None:
    log.append(user("a"), header(model="m"), user("b"), replacing(system("S"), 0, 2))
    log.snapshot()
    assert log.header_answer().header.model == "m"
