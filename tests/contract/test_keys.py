"""Servers that ask for keys: who is let in, to what, and for how long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import grpc
import pytest
from foldlog.application.keyring import new_key
from foldlog.core.role import Role
from foldlog.server.permissions import NEEDED
from foldlog.v1 import event_pb2, service_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.contract.attachments import digest_of, put, sample
from tests.contract.attachments import elements as uploaded
from tests.contract.calls import Calls, fresh_id, raw_call
from tests.contract.refusal import Refusal, refusal_of, refused
from tests.contract.said import user
from tests.keyed import caller, channel_of, insert, make_key, revoke_key, stub_of
from tests.served import Served

METHODS = service_pb2.DESCRIPTOR.services_by_name["SessionService"].methods_by_name
DEADLINE_S = 60.0


def called(channel: grpc.Channel, rpc: str) -> Refusal | None:
    """Make a call with an empty request and return what it refused with, if it did."""
    method = METHODS[rpc]
    shape = "stream" if method.client_streaming else "unary"
    shape += "_stream" if method.server_streaming else "_unary"
    call = getattr(channel, shape)(f"/foldlog.v1.SessionService/{rpc}")
    try:
        answer = call(iter([b""]) if method.client_streaming else b"", timeout=DEADLINE_S)
        if method.server_streaming:
            next(answer, None)
            answer.cancel()
    except grpc.RpcError as error:
        return refusal_of(error)
    return None


def bad_tokens(served: Served) -> Iterator[str]:
    """Yield tokens of every kind that is not let in."""
    yield from ("", "x", "foldlog_0123456789abcdef_" + "0" * 64)
    good = make_key(served.database_url)
    yield good[:-1] + ("0" if good[-1] != "0" else "1")
    yield good.upper()
    revoked = make_key(served.database_url)
    revoke_key(served.database_url, revoked)
    yield revoked
    key, row = new_key("default", Role.ADMIN, {})
    yield insert(served.database_url, key.text, replace(row, expires_ns=time.time_ns() - 1))


def test_whoever_is_not_known_gets_one_answer_whatever_is_wrong(guarded: Served) -> None:
    channels = [guarded.channel, *(channel_of(guarded, token) for token in bad_tokens(guarded))]
    answers = [called(channel, "GetSession") for channel in channels]
    assert {answer.reason for answer in answers if answer} == {"UNAUTHENTICATED"}
    assert all(answer == answers[0] and not answer.facts for answer in answers if answer)
    assert None not in answers


def test_no_call_is_answered_without_a_key(guarded: Served) -> None:
    for rpc in NEEDED:
        answer = called(guarded.channel, rpc)
        assert answer is not None, rpc
        assert (answer.reason, answer.code) == ("UNAUTHENTICATED", grpc.StatusCode.UNAUTHENTICATED)


@pytest.mark.parametrize("role", Role, ids=lambda role: role.label)
def test_a_role_decides_which_calls_are_let_through(guarded: Served, role: Role) -> None:
    channel = channel_of(guarded, make_key(guarded.database_url, role))
    denied = {
        rpc
        for rpc in NEEDED
        if (said := called(channel, rpc)) and said.reason == "PERMISSION_DENIED"
    }
    assert denied == {rpc for rpc, needed in NEEDED.items() if needed > role}


def test_a_writer_does_not_delete_and_is_told_what_it_takes(guarded: Served) -> None:
    log = Calls.create(caller(guarded, Role.WRITER))
    request = service_pb2.DeleteSessionRequest(session_id=log.session_id)
    with refused("PERMISSION_DENIED", action="DeleteSession", needs="the role admin"):
        log.stub.DeleteSession(request, timeout=DEADLINE_S)
    caller(guarded).DeleteSession(request, timeout=DEADLINE_S)


def test_health_asks_for_no_key_and_reflection_for_any(guarded: Served) -> None:
    health = health_pb2_grpc.HealthStub(guarded.channel)
    answer = health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING

    def reflected(channel: grpc.Channel) -> int:
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        (found,) = stub.ServerReflectionInfo(iter([asked]), timeout=DEADLINE_S)
        return len(found.list_services_response.service)

    assert reflected(channel_of(guarded, make_key(guarded.database_url, Role.READER))) == 3
    with refused("UNAUTHENTICATED"):
        reflected(guarded.channel)


def ended(answers: Any) -> Refusal:
    """Read a stream to its end and return why it ended."""
    with pytest.raises(grpc.RpcError) as caught:
        for _ in answers:
            pass
    return refusal_of(caught.value)


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
def test_a_revoked_key_stops_and_its_watches_and_streams_end(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, FOLDLOG_AUTH="keys", FOLDLOG_KEY_REVOCATION_S="0.4")
    token = make_key(served.database_url)
    log = Calls.create(stub_of(served, token))
    log.append(user("a"))
    watch, feed = log.watch(), log.stub.WatchAllEvents(service_pb2.WatchAllEventsRequest())
    elements: Any = _batches(log)
    stream = log.stub.AppendStream(elements)
    assert next(stream).appended.next_seq == 2
    assert next(watch).event.seq == 0
    assert next(feed).session_id == log.session_id
    revoke_key(served.database_url, token)
    assert [ended(each).reason for each in (watch, feed, stream)] == ["UNAUTHENTICATED"] * 3
    with refused("UNAUTHENTICATED"):
        log.get()


def _batches(log: Calls) -> Iterator[service_pb2.AppendStreamRequest]:
    """Yield one batch, and then nothing for as long as the stream is open."""
    yield service_pb2.AppendStreamRequest(number=1, batch=log.append_request(user("b")))
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        time.sleep(0.05)


WITHIN_S = 0.4


def _revoked_before_its_end(served: Served, token: str, elements: Any) -> Iterator[Any]:
    """Yield a call's elements; its end comes once the key is revoked for as long as it may last."""
    yield from elements
    revoke_key(served.database_url, token)
    over = time.monotonic() + WITHIN_S
    while time.monotonic() <= over:
        time.sleep(0.05)


def _uploads(log: Calls, child: str) -> dict[str, list[Any]]:
    """Return the elements of each call that takes a stream and gives one answer."""
    restoring = service_pb2.RestoreHeader(session_id=log.session_id)
    restored = event_pb2.Event(seq=5, body=user("restored").body)
    batch = service_pb2.RestoreBatch(events=[restored])
    importing = service_pb2.ImportHeader(session_id=child)
    return {
        "PutAttachment": list(uploaded(child.encode())),
        "RestoreEvents": [
            service_pb2.RestoreEventsRequest(header=restoring),
            service_pb2.RestoreEventsRequest(batch=batch),
        ],
        "ImportSession": [
            service_pb2.ImportSessionRequest(header=importing),
            service_pb2.ImportSessionRequest(data=log.export()),
        ],
    }


@pytest.mark.parametrize("rpc", ["PutAttachment", "RestoreEvents", "ImportSession"])
def test_an_upload_of_a_revoked_key_comes_to_nothing(
    serve: Callable[..., Served], rpc: str
) -> None:
    served = serve("sqlite-file", FOLDLOG_AUTH="keys", FOLDLOG_KEY_REVOCATION_S=str(WITHIN_S))
    log, child = Calls.create(caller(served)), fresh_id()
    log.append(user("a"))
    token = make_key(served.database_url, Role.WRITER)
    elements = _revoked_before_its_end(served, token, _uploads(log, child)[rpc])
    with refused("UNAUTHENTICATED"):
        getattr(stub_of(served, token), rpc)(elements, timeout=DEADLINE_S)
    assert log.texts() == ["a"]
    with refused("SESSION_NOT_FOUND"):
        Calls(log.stub, child).get()
    assert not put(log.stub, child.encode()).existed


def test_a_download_of_a_revoked_key_ends(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_AUTH="keys", FOLDLOG_KEY_REVOCATION_S=str(WITHIN_S))
    data = sample(16_000_000, [fresh_id()])
    token = make_key(served.database_url)
    stub = stub_of(served, token)
    put(stub, data)
    request = service_pb2.GetAttachmentRequest(sha256=digest_of(data))
    pieces = stub.GetAttachment(request, timeout=DEADLINE_S)
    assert next(pieces).data
    list(_revoked_before_its_end(served, token, ()))
    assert ended(pieces).reason == "UNAUTHENTICATED"


def test_a_token_that_is_there_twice_is_none(guarded: Served) -> None:
    good = ("authorization", f"Bearer {make_key(guarded.database_url)}")
    call = raw_call(guarded.channel, "ListSessions")
    call(b"", metadata=(good,), timeout=DEADLINE_S)
    for others in ((good,), (("authorization", "Bearer x"),), (("authorization", ""), good)):
        for pairs in ((good, *others), (*others, good)):
            with refused("UNAUTHENTICATED"):
                call(b"", metadata=pairs, timeout=DEADLINE_S)


def test_a_key_is_in_no_log(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_AUTH="keys", FOLDLOG_LOG_LEVEL="debug")
    token = make_key(served.database_url, Role.READER)
    stub = stub_of(served, token)
    with refused("PERMISSION_DENIED"):
        Calls.create(stub)
    raw_call(channel_of(served, token), "ListSessions")(b"", timeout=DEADLINE_S)
    served.terminate()
    assert token.split("_")[2] not in served.output.read_text()
