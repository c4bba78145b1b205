"""What a caller can send wrong is answered as such, and never as a fault of the service."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from foldlog.v1 import error_reason_pb2, event_pb2, service_pb2

from tests.contract.calls import Calls, fresh_id, raw_call
from tests.contract.refusal import CODES, refusal_of
from tests.contract.said import user
from tests.served import Served

SERVICE = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
METHODS = {each.name: each for each in SERVICE.methods}
GARBAGE = {
    "truncated": b"\x0a\x10abc",
    "varint": b"\x08" + b"\xff" * 11,
    "invalid UTF-8": b"\x0a\x02\xff\xfe",
    "group": b"\x0b\x0b\x0b",
    "zero tag": b"\x00\x00",
}


def sent_raw(served: Served, name: str, data: bytes) -> grpc.RpcError | None:
    """Send bytes as the first element of a call and return how it failed."""
    method, channel = METHODS[name], served.channel
    kinds: dict[tuple[bool, bool], Callable[..., Any]] = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, False): channel.stream_unary,
        (True, True): channel.stream_stream,
    }
    make = kinds[method.client_streaming, method.server_streaming]
    first = iter([data]) if method.client_streaming else data
    try:
        answer = make(f"/foldlog.v1.SessionService/{name}")(first, timeout=10)
        if method.server_streaming:
            next(iter(answer), None)
            answer.cancel()
    except grpc.RpcError as error:
        return error
    return None


ANSWERED_WHEN_EMPTY = {
    *("CreateSession", "ListSessions", "WatchAllEvents", "AppendStream", "ListUnresolvedCalls"),
    *("HeadAttachments", "CollectAttachments"),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_bytes_that_do_not_decode_are_an_invalid_argument(
    memory: Served, name: str, data: bytes
) -> None:
    error = sent_raw(memory, name, data)
    if error is None:
        # An unknown field of another wire type is no damage: the request is then empty or odd.
        assert name in ANSWERED_WHEN_EMPTY
        return
    told = refusal_of(error)
    if (name, told.reason) == ("GetSigningKey", "SIGNING_KEY_MISSING"):
        return  # its request has no field, so what decodes at all is empty
    assert told.code == grpc.StatusCode.INVALID_ARGUMENT, (name, told)
    assert told.reason == "INVALID_FIELD"


@pytest.mark.parametrize("name", METHODS)
def test_random_bytes_are_never_a_fault_of_the_service(memory: Served, name: str) -> None:
    chance = random.Random(name)
    for _ in range(10):
        error = sent_raw(memory, name, chance.randbytes(chance.randrange(1, 60)))
        if error is not None:
            code = refusal_of(error).code
            assert code not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}, code


def test_every_reason_has_a_code_here() -> None:
    later = {"INTERNAL", "UNSPECIFIED"}
    names = {name.removeprefix("ERROR_REASON_") for name, _ in error_reason_pb2.ErrorReason.items()}
    assert names - later == CODES.keys()


@pytest.mark.parametrize("session_id", ["\ufffd", "x" * 513, "a\0", ""])
def test_an_odd_id_is_answered_the_same_by_every_read(stub: Any, session_id: str) -> None:
    log = Calls(stub, session_id)
    told = set()
    for call in (log.get, log.fold, log.events, log.lineage, log.verify, log.export):
        with pytest.raises(grpc.RpcError) as caught:
            call()
        told.add((refusal_of(caught.value).reason, refusal_of(caught.value).code))
    assert len(told) == 1
    assert told <= {
        ("INVALID_FIELD", grpc.StatusCode.INVALID_ARGUMENT),
        ("TOO_LARGE", grpc.StatusCode.INVALID_ARGUMENT),
        ("SESSION_NOT_FOUND", grpc.StatusCode.NOT_FOUND),
    }


def test_a_message_names_the_thing_and_holds_no_payload(log: Calls) -> None:
    log.append(user("secret words"))
    with pytest.raises(grpc.RpcError) as caught:
        log.append(user("secret words", metadata_json="{secret"), expected_next_seq=5)
    assert "secret" not in (caught.value.details() or "")


def test_an_unknown_method_is_unimplemented(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        raw_call(served.channel, "NoSuchMethod")(b"")
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_numbers_at_the_ends_of_their_range_are_no_fault(log: Calls) -> None:
    log.append(user("a"))
    for number in (2**63 - 1, -(2**63), -1, 2**31):
        for call in (
            lambda n: log.fold(n),
            lambda n: log.rewind(n, expected_next_seq=n),
            lambda n: log.events(n),
            lambda n: log.fork(n),
            lambda n: log.append(user("x"), expected_next_seq=n),
            lambda n: log.append(user("x"), writer_epoch=n),
            lambda n: log.fold(skip=n),
            lambda n: log.fold(min_next_seq=n),
            lambda n: log.close_writer(n),
            lambda n: log.restore(user_at(n)),
        ):
            try:
                call(number)
            except grpc.RpcError as error:
                code = refusal_of(error).code
                assert code not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


def user_at(seq: int) -> Any:
    """Return an event to restore."""
    return event_pb2.Event(seq=seq, body=user("x").body)


def test_a_session_survives_what_was_refused(log: Calls) -> None:
    for _ in range(5):
        with pytest.raises(grpc.RpcError):
            log.append(user("x", metadata_json="{"))
        with pytest.raises(grpc.RpcError):
            log.other(fresh_id()).append(user("x"))
    assert log.append(user("a")).first_seq == 0
