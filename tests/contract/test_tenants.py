"""Tenants on one server: each finds what it would find alone."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from foldlog.core.role import Role
from foldlog.v1 import service_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.attachments import collect, digest_of, got, put, sample, stored
from tests.contract.calls import DEADLINE_S, Calls, fresh_id
from tests.contract.naming_sessions import METHODS, USED, naming, outcome
from tests.contract.random_ops import drawn, sent
from tests.contract.recovering import logs_call, unresolved_pages
from tests.contract.refusal import refused
from tests.contract.said import assistant, user
from tests.contract.test_feed import Feed
from tests.keyed import caller
from tests.served import Served

EXAMPLES = settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Pair:
    """Two tenants that are new."""

    red: Any
    blue: Any


@pytest.fixture
def tenants(guarded: Served) -> Pair:
    """Two new tenants on one server."""
    red, blue = (caller(guarded, Role.ADMIN, fresh_id(name)) for name in ("red", "blue"))
    return Pair(red, blue)


def test_one_id_is_a_session_of_each(tenants: Pair) -> None:
    red = Calls.create(tenants.red, labels={"a": "red"})
    blue = Calls.create(tenants.blue, red.session_id, labels={"a": "blue"})
    red.append(user("red"), request_id="r")
    blue.append(user("blue"), request_id="r")
    assert (red.texts(), blue.texts()) == (["red"], ["blue"])
    assert red.get().labels["a"] == "red"
    blue.delete()
    assert red.texts() == ["red"]


def test_a_session_of_another_answers_every_call_as_an_absent_one(tenants: Pair) -> None:
    red = Calls.create(tenants.red)
    red.append(user("again"), assistant("b", "c"), request_id=USED)
    absent = fresh_id()
    for rpc in METHODS:
        if not naming(rpc, absent):
            continue
        answers = [
            outcome(tenants.blue, rpc, naming(rpc, each), each) for each in (red.session_id, absent)
        ]
        assert answers[0] == answers[1], rpc
    assert red.texts() == ["again", "b"]


def test_attachments_and_what_is_said_of_them_are_a_tenants_own(tenants: Pair) -> None:
    for size in (1_000, 400_000):
        data = sample(size, [fresh_id()])
        digest = digest_of(data)
        assert not put(tenants.red, data).existed
        assert stored(tenants.blue, digest) == {}
        with refused("ATTACHMENT_UNKNOWN"):
            got(tenants.blue, digest)
        assert not put(tenants.blue, data).existed
        assert put(tenants.blue, data).existed
        assert got(tenants.red, digest) == data == got(tenants.blue, digest)
    assert collect(tenants.red, dry_run=True).examined_count == 2


def listed(stub: Any) -> list[str]:
    request = service_pb2.ListSessionsRequest()
    return [s.session_id for s in stub.ListSessions(request, timeout=DEADLINE_S).sessions]


def test_listings_and_the_feed_are_a_tenants_own(tenants: Pair) -> None:
    red, blue = Calls.create(tenants.red), Calls.create(tenants.blue)
    for log in (red, blue):
        log.append(assistant("", "c"), logs_call("c"))
    for stub, log in ((tenants.red, red), (tenants.blue, blue)):
        assert listed(stub) == [log.session_id]
        calls = [each for page in unresolved_pages(stub) for each in page.calls]
        assert [each.session_id for each in calls] == [log.session_id]
        feed = Feed(stub)
        told = [feed.next() for _ in range(4)]
        assert {each.session_id for each in told} == {log.session_id, ""}
        assert told[-1].WhichOneof("kind") == "caught_up"
        feed.cancel()


def test_a_page_token_of_another_is_of_no_use(tenants: Pair) -> None:
    for _ in range(2):
        Calls.create(tenants.red)
    blue = Calls.create(tenants.blue)
    request = service_pb2.ListSessionsRequest(page_size=1)
    request.page_token = tenants.red.ListSessions(request, timeout=DEADLINE_S).next_page_token
    try:
        answer = tenants.blue.ListSessions(request, timeout=DEADLINE_S)
    except grpc.RpcError:
        return
    assert {each.session_id for each in answer.sessions} <= {blue.session_id}


@dataclass
class Told:
    """What a tenant was told, call by call, and where its feed ended."""

    answers: list[str] = field(default_factory=list)
    state: list[Any] = field(default_factory=list)


def play(stub: Any, script: list[tuple[str, int]], told: Told, step: int) -> None:
    """Make one step of a script: on a session of its own name, the op that its seed draws."""
    name, seed = script[step]
    log = Calls(stub, name)
    try:
        next_seq = log.get().next_seq
    except grpc.RpcError:
        Calls.create(stub, name)
        next_seq = 0
    told.answers.append(sent(log, drawn(random.Random(seed), next_seq, f"t{step}"), next_seq))
    told.answers.append(repr(put(stub, str(seed % 3).encode()).existed))


def seen(stub: Any) -> list[Any]:
    """Return all that a tenant finds."""
    found: list[Any] = []
    for name in sorted(listed(stub)):
        log = Calls(stub, name)
        events = [(e.seq, e.type, e.state, e.body.SerializeToString()) for e in log.events()]
        found.append((name, log.texts(), events, log.verify().intact))
    feed, told = Feed(stub), list[Any]()
    while (element := feed.next()).WhichOneof("kind") != "caught_up":
        told.append((element.session_id, element.event.seq, element.event.type))
    feed.cancel()
    return [*found, told]


scripts = st.lists(
    st.tuples(st.sampled_from(["one", "two"]), st.integers(0, 2**32)), min_size=1, max_size=12
)


@given(red=scripts, blue=scripts, seed=st.integers(0, 2**32))
@EXAMPLES
def test_any_interleaving_gives_each_what_it_would_find_alone(
    guarded: Served, red: list[tuple[str, int]], blue: list[tuple[str, int]], seed: int
) -> None:
    def tenant() -> Any:
        return caller(guarded, Role.ADMIN, fresh_id("t"))

    alone = {}
    for name, script in (("red", red), ("blue", blue)):
        stub, told = tenant(), Told()
        for step in range(len(script)):
            play(stub, script, told, step)
        told.state = seen(stub)
        alone[name] = told
    stubs = {"red": tenant(), "blue": tenant()}
    together = {"red": Told(), "blue": Told()}
    turns = ["red"] * len(red) + ["blue"] * len(blue)
    random.Random(seed).shuffle(turns)
    for turn, name in enumerate(turns):
        script = red if name == "red" else blue
        play(stubs[name], script, together[name], turns[:turn].count(name))
    for name, told in together.items():
        told.state = seen(stubs[name])
    assert together == alone
