"""Quotas: what a tenant may use, and what it is told where there is no more."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from foldlog.core.role import Role
from foldlog.v1 import service_pb2

from tests.cli.shell import Shell
from tests.contract.attachments import put, sample
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.refusal import Refusal, refusal_in, refusal_of, refused
from tests.contract.said import user
from tests.keyed import caller
from tests.served import Served

BACKENDS = ["sqlite-memory", "sqlite-file", "postgres"]
KIB = 1024


def eventually(call: Callable[[], Any]) -> Any:
    """Make a call until it is not refused for a quota."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            if refusal_of(error).reason != "QUOTA_EXCEEDED" or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sessions_are_counted_exactly_and_a_deleted_one_makes_room(
    serve: Callable[..., Served], backend: str
) -> None:
    stub = serve(backend, FOLDLOG_QUOTA_SESSIONS="3").stub
    log = Calls.create(stub, request_id="first")
    log.append(user("a"))
    log.fork()
    third = Calls.create(stub, "third", request_id="third")
    for make in (
        lambda: Calls.create(stub),
        lambda: log.fork(),
        lambda: imported(stub, log.export(), fresh_id()),
    ):
        with refused("QUOTA_EXCEEDED", quota="sessions", limit=3, used=3) as told:
            make()
        assert told.retry is not None
    # What is answered already is answered again, and what needs no room goes on.
    assert Calls.create(stub, "third", request_id="third").session_id == third.session_id
    log.append(user("b"))
    third.delete()
    eventually(lambda: Calls.create(stub))
    with refused("QUOTA_EXCEEDED"):
        Calls.create(stub)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bytes_are_refused_whole_before_they_are_too_many(
    serve: Callable[..., Served], backend: str
) -> None:
    stub = serve(backend, FOLDLOG_QUOTA_BYTES=str(100 * KIB)).stub
    log = Calls.create(stub)
    sent = 0
    while True:
        try:
            log.append(user("x" * 9 * KIB), request_id=f"r{sent}")
        except grpc.RpcError as error:
            refusal = refusal_of(error)
            break
        sent += 1
    assert (refusal.reason, refusal.facts["quota"]) == ("QUOTA_EXCEEDED", "bytes")
    assert sent == 10
    assert len(log.events()) == sent
    log.append(user("x" * 9 * KIB), request_id="r0")  # a retry needs no room
    with refused("QUOTA_EXCEEDED", quota="bytes"):
        put(stub, sample(20 * KIB, [fresh_id()]))
    with refused("QUOTA_EXCEEDED", quota="bytes"):
        log.restore(*[_restored(log, user("x" * 20 * KIB))])
    log.append(user("x"))
    log.delete()


def _restored(log: Calls, event: Any) -> Any:
    from foldlog.v1 import event_pb2

    return event_pb2.Event(seq=log.get().next_seq + 1, body=event.body)


def test_attachments_take_room_once(serve: Callable[..., Served]) -> None:
    stub = serve("sqlite-file", FOLDLOG_QUOTA_BYTES=str(100 * KIB)).stub
    data = sample(60 * KIB, [fresh_id()])
    put(stub, data)
    assert put(stub, data).existed
    with refused("QUOTA_EXCEEDED", quota="bytes", limit=100 * KIB):
        put(stub, sample(60 * KIB, [fresh_id()]))


def test_a_snapshot_makes_room(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_QUOTA_BYTES=str(100 * KIB))
    log = Calls.create(served.stub)
    for _ in range(9):
        log.append(user("x" * 9 * KIB))
    with refused("QUOTA_EXCEEDED"):
        log.append(user("x" * 30 * KIB))
    log.rewind(0)
    log.snapshot()
    eventually(lambda: log.append(user("x" * 30 * KIB)))


def test_what_is_used_outlives_a_restart(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_QUOTA_SESSIONS="2")
    for _ in range(2):
        Calls.create(served.stub)
    served.restart()
    with refused("QUOTA_EXCEEDED", used=2):
        eventually_full(served.stub)


def eventually_full(stub: Any) -> None:
    """Create sessions until the index has counted those before the restart."""
    for _ in range(2):
        stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S)
        Calls.create(stub)


def test_two_processes_count_together(serve: Callable[..., Served]) -> None:
    limits = {"FOLDLOG_QUOTA_SESSIONS": "4"}
    first = serve("postgres", **limits)
    second = serve("postgres", url=first.database_url, **limits)
    for _ in range(2):
        Calls.create(first.stub)
        Calls.create(second.stub)
    deadline = time.monotonic() + DEADLINE_S
    refusals: set[str] = set()
    made = 4
    while len(refusals) < 2 and time.monotonic() < deadline:
        for name, served in (("first", first), ("second", second)):
            try:
                Calls.create(served.stub)
                made += 1
            except grpc.RpcError:
                refusals.add(name)
    assert refusals == {"first", "second"}
    assert made < 200  # until the next look, which is at most five seconds away


def _called(stub: Any) -> Refusal | None:
    try:
        stub.GetSession(service_pb2.GetSessionRequest(session_id="s"), timeout=DEADLINE_S)
    except grpc.RpcError as error:
        return refusal_of(error)
    return None


def test_calls_are_let_through_at_a_rate(serve: Callable[..., Served]) -> None:
    stub = serve("sqlite-memory", FOLDLOG_QUOTA_CALLS_PER_S="20").stub
    began = time.monotonic()
    answers = [_called(stub) for _ in range(200)]
    took_s = time.monotonic() - began
    passed = [each for each in answers if each and each.reason == "SESSION_NOT_FOUND"]
    late = [each for each in answers if each and each.reason == "QUOTA_EXCEEDED"]
    assert len(passed) + len(late) == 200
    assert len(passed) <= 20 * (took_s + 1) + 1
    for each in late[:1]:
        assert each.facts == {"quota": "calls_per_s", "limit": "20", "used": "20"}
        assert each.retry is not None
        assert each.retry.retry_delay.seconds == 1


def test_batches_of_a_stream_are_calls_too(serve: Callable[..., Served]) -> None:
    stub = serve("sqlite-memory", FOLDLOG_QUOTA_CALLS_PER_S="5").stub
    log = eventually(lambda: Calls.create(stub))
    elements = [
        service_pb2.AppendStreamRequest(number=n, batch=log.append_request(user("x")))
        for n in range(300)
    ]
    answers = list(stub.AppendStream(iter(elements), timeout=DEADLINE_S))
    reasons = {refusal_in(each.error).reason for each in answers if each.HasField("error")}
    assert reasons == {"QUOTA_EXCEEDED", "PREVIOUS_BATCH_FAILED"}


def test_watches_are_counted_while_they_are_open(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-memory", FOLDLOG_QUOTA_WATCHES="2")
    log = Calls.create(served.stub)
    watches = [log.watch(), log.watch()]
    for watch in watches:
        next(watch)
    with refused("QUOTA_EXCEEDED", quota="watches", limit=2, used=2):
        next(log.watch())
    watches[0].cancel()
    eventually(lambda: next(log.watch()))
    served.terminate()
    assert "never awaited" not in served.output.read_text()


def test_a_tenant_has_quotas_of_its_own(guarded: Served) -> None:
    shell, red, blue = Shell(guarded.address), fresh_id("red"), fresh_id("blue")
    url = ("--database-url", guarded.database_url)
    shell.ok("quotas", "set", red, "--sessions", "1", *url)
    stubs = {tenant: caller(guarded, Role.ADMIN, tenant) for tenant in (red, blue)}
    Calls.create(stubs[red])
    with refused("QUOTA_EXCEEDED", quota="sessions", limit=1):
        Calls.create(stubs[red])
    for _ in range(3):
        Calls.create(stubs[blue])
    shell.ok("quotas", "set", red, "--sessions", "-1", "--bytes", "0", *url)
    eventually(lambda: Calls.create(stubs[red]))
    shown = {each["tenant"]: each for each in shell.json_lines("quotas", "show", *url)}
    assert shown[red]["quotas"] == {
        "sessions": None,
        "bytes": 0,
        "calls_per_s": None,
        "watches": None,
    }
    before = shown[blue]["used"]
    shell.ok("quotas", "recount", *url)
    again = {each["tenant"]: each for each in shell.json_lines("quotas", "show", *url)}
    assert again[blue]["used"] == before
    assert before["sessions"] == 3
