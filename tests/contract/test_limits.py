"""Limits: what is at them passes, what is over them names size and limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from foldlog.v1 import event_pb2, service_pb2

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refusal_in, refusal_of, refused
from tests.contract.said import custom, user
from tests.served import Served

EVENT_BYTES = 7 * 1024 * 1024 // 2
MIB = 1024 * 1024


def of_size(size: int) -> event_pb2.NewEvent:
    """Return an event whose encoded body has this size."""
    made = user("")
    made.body.message.text = "x" * (size - made.body.ByteSize() - 20)
    made.body.message.text += "x" * (size - made.body.ByteSize())
    assert made.body.ByteSize() == size
    return made


def test_the_largest_event_can_be_read_by_every_call(log: Calls) -> None:
    log.append(of_size(EVENT_BYTES))
    assert len(log.events()[0].body.message.text) > 3 * MIB
    assert len(log.texts()[0]) > 3 * MIB
    watch = log.watch()
    assert next(watch).event.seq == 0
    watch.cancel()
    assert log.fork().texts() == log.texts()
    assert not log.check(*log.messages()).HasField("violation")
    assert len(log.export()) > 3 * MIB


def test_an_event_over_the_limit_names_size_and_limit(log: Calls) -> None:
    with refused("TOO_LARGE", size=EVENT_BYTES + 1, limit=EVENT_BYTES):
        log.append(of_size(EVENT_BYTES + 1))
    assert log.get().next_seq == 0


def test_a_batch_over_its_bytes_names_size_and_limit(log: Calls) -> None:
    half = EVENT_BYTES // 2
    log.append(of_size(half), of_size(half))
    with refused("TOO_LARGE", limit=EVENT_BYTES) as told:
        log.append(of_size(half), of_size(half), of_size(100))
    assert int(told.facts["size"]) > EVENT_BYTES
    assert log.get().next_seq == 2


def test_a_batch_over_its_count_names_size_and_limit(log: Calls) -> None:
    log.append(*(user("x") for _ in range(1000)))
    with refused("TOO_LARGE", size=1001, limit=1000):
        log.append(*(user("x") for _ in range(1001)))
    assert log.get().next_seq == 1000


@pytest.mark.parametrize("size", [5, 12, 40, 60])
def test_what_grpc_lets_through_the_service_refuses(memory: Served, size: int) -> None:
    log = Calls.create(memory.stub)
    with refused("TOO_LARGE", limit=EVENT_BYTES) as told:
        log.append(user("x" * (size * MIB)))
    assert int(told.facts["size"]) > size * MIB
    assert told.retry is None


def test_past_the_receive_limit_the_refusal_says_nothing_of_retrying(memory: Served) -> None:
    log = Calls.create(memory.stub)
    with pytest.raises(grpc.RpcError) as caught:
        log.append(user("x" * (66 * MIB)))
    told = refusal_of(caught.value)
    assert told.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert told.retry is None
    assert log.append(user("next")).first_seq == 0


def test_limits_are_settings(serve: Callable[..., Served]) -> None:
    served = serve(
        FOLDLOG_LIMIT_EVENT_BYTES="1000",
        FOLDLOG_LIMIT_BATCH_EVENTS="3",
        FOLDLOG_LIMIT_JSON_DEPTH="2",
        FOLDLOG_LIMIT_CUSTOM_KEYS="1",
        FOLDLOG_LIMIT_PAGE_BYTES="2000",
        FOLDLOG_LIMIT_RESTORE_EVENTS="4",
    )
    log = Calls.create(served.stub)
    with refused("TOO_LARGE", limit=1000):
        log.append(user("x" * 1000))
    with refused("TOO_LARGE", size=4, limit=3):
        log.append(*(user("x") for _ in range(4)))
    with refused("INVALID_FIELD"):
        log.append(user("x", metadata_json="[[[]]]"))
    with refused("INVALID_FIELD"):
        log.append(custom("k", b"", "a", "b"))
    with refused("TOO_LARGE", limit=4):
        log.restore(*(event_pb2.Event(seq=i, body=user("x").body) for i in range(5)))
    for _ in range(4):
        log.append(*(user("x" * 500) for _ in range(3)))
    assert len(list(log.pages())) > 2
    assert len(log.fold_pieces()) > 2


def test_long_ids_and_names_of_calls_are_kept(log: Calls) -> None:
    call_id, name = "i" * 10_000, "名" * 5_000
    new = user("")
    new.body.message.tool_calls.add(id=call_id, name=name)
    log.append(new)
    (call,) = log.messages()[0].tool_calls
    assert (call.id, call.name) == (call_id, name)


def test_a_session_of_thousands_of_events_reads_whole(log: Calls) -> None:
    for first in range(0, 5_000, 1_000):
        log.append(*(user(str(i)) for i in range(first, first + 1_000)))
    assert log.texts() == [str(i) for i in range(5_000)]
    assert [each.seq for each in log.events()] == list(range(5_000))
    pages: list[Any] = list(log.pages(page_size=1_000))
    assert len(pages) == 5


def empty(number: int) -> bytes:
    """Return an empty field as it is encoded; the number is at most 15."""
    return bytes([number << 3 | 2, 0])


@pytest.mark.parametrize(
    ("rpc", "crowd"),
    [
        pytest.param("AppendEvents", 3, id="events"),
        pytest.param("CheckRequest", 2, id="messages"),
        pytest.param("CreateSession", 3, id="labels"),
        pytest.param("HeadAttachments", 1, id="digests"),
        pytest.param("ListSessions", 15, id="what nobody knows"),
    ],
)
def test_a_crowd_of_fields_is_not_even_decoded(memory: Served, rpc: str, crowd: int) -> None:
    call: Callable[..., Any] = memory.channel.unary_unary(f"/foldlog.v1.SessionService/{rpc}")
    with refused("TOO_LARGE", field="request.fields", limit=250_000):
        call(empty(crowd) * 300_000, timeout=DEADLINE_S)


def test_a_crowded_element_of_a_stream_is_refused_alone(memory: Served) -> None:
    log = Calls.create(memory.stub)
    call: Any = memory.channel.stream_stream("/foldlog.v1.SessionService/AppendStream")
    batch = log.append_request(user("a"))
    sound = service_pb2.AppendStreamRequest(number=7, batch=batch).SerializeToString()
    answers = call(iter([empty(15) * 300_000, sound]), timeout=DEADLINE_S)
    crowded, written = map(service_pb2.AppendStreamResponse.FromString, answers)
    assert refusal_in(crowded.error).facts["field"] == "request.fields"
    assert (written.number, written.appended.next_seq) == (7, 1)
