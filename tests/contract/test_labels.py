"""Keys with labels: the sessions that bear them are there, and all others are absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from foldlog.core.role import Role
from foldlog.v1 import event_pb2, service_pb2

from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.naming_sessions import METHODS, TOO_LONG, USED, naming, outcome
from tests.contract.recovering import logs_call, unresolved_pages
from tests.contract.refusal import refusal_of, refused
from tests.contract.said import assistant, user
from tests.contract.test_feed import Feed
from tests.keyed import caller
from tests.served import Served

NAMING = sorted(rpc for rpc in METHODS if naming(rpc, "s"))


@dataclass(frozen=True)
class Callers:
    """Who sees all of a tenant, and who sees what bears a label, which nothing else bears."""

    whole: Any
    red: Any
    label: dict[str, str]

    def log(self, **fields: Any) -> Calls:
        """Make a session that the red caller sees."""
        return Calls.create(self.red, labels=self.label | {"a": "b"}, **fields)

    def hidden(self, **fields: Any) -> Calls:
        """Make a session that the red caller does not see, with two events of a used request id."""
        log = Calls.create(self.whole, labels={"team": "blue"}, **fields)
        log.append(user("again"), assistant("b", "c"), request_id=USED)
        log.append(logs_call("c"))
        return Calls(self.red, log.session_id)


@pytest.fixture
def callers(guarded: Served) -> Callers:
    """The callers of a tenant that is new."""
    label = {"team": fresh_id("red")}
    return Callers(caller(guarded), caller(guarded, Role.ADMIN, **label), label)


def test_most_calls_name_a_session() -> None:
    assert len(NAMING) >= 30
    assert "AppendStream" in NAMING


@pytest.mark.parametrize("request_id", [USED, TOO_LONG], ids=["used", "malformed"])
def test_another_session_answers_every_call_as_an_absent_one(
    callers: Callers, request_id: str
) -> None:
    hidden, absent = callers.hidden().session_id, fresh_id()
    told = {
        rpc: [
            outcome(callers.red, rpc, naming(rpc, each, request_id, callers.label), each)
            for each in (hidden, absent)
        ]
        for rpc in NAMING
    }
    assert {rpc: both for rpc, both in told.items() if both[0] != both[1]} == {}
    others = {rpc: both[0] for rpc, both in told.items() if "SESSION_NOT_FOUND" not in both[0]}
    # Erasing wants a key without labels, whatever it is asked of.
    answering = {"ListSessions", "ListUnresolvedCalls", "EraseSession"}
    assert request_id == TOO_LONG or others.keys() == answering, others


def test_a_deleted_session_of_others_is_absent_too(callers: Callers) -> None:
    hidden = callers.hidden()
    Calls(callers.whole, hidden.session_id).delete()
    with refused("SESSION_NOT_FOUND"):
        hidden.get()
    own = callers.log()
    own.delete()
    with refused("SESSION_DELETED"):
        own.get()


def test_an_id_is_taken_whoever_sees_its_session(callers: Callers) -> None:
    hidden = callers.hidden()
    with refused("SESSION_EXISTS", session_id=hidden.session_id):
        callers.log(session_id=hidden.session_id)
    own = callers.log()
    with refused("SESSION_EXISTS"):
        own.fork(child=hidden.session_id, labels=callers.label)
    with refused("SESSION_EXISTS"):
        imported(callers.red, own.export(), hidden.session_id)


def test_what_is_made_bears_the_labels(callers: Callers) -> None:
    needs = f"a session with the labels team={callers.label['team']}"
    for labels in ({}, {"team": "blue"}):
        with refused("PERMISSION_DENIED", action="CreateSession", needs=needs):
            Calls.create(callers.red, labels=labels)
    log = callers.log()
    with refused("PERMISSION_DENIED", action="ForkSession", needs=needs):
        log.fork()
    fork = log.fork(labels=callers.label)
    assert fork.lineage() == [(log.session_id, -1)]
    other = Calls.create(callers.whole)
    with refused("PERMISSION_DENIED", action="ImportSession", needs=needs):
        imported(callers.red, other.export(), fresh_id())
    assert imported(callers.red, log.export(), fresh_id()).session.labels["team"]


@pytest.mark.parametrize("change", [{"remove_labels": ["team"]}, {"set_labels": {"team": "blue"}}])
def test_the_labels_cannot_be_taken_away(callers: Callers, change: dict[str, Any]) -> None:
    log = callers.log()
    with refused("PERMISSION_DENIED", action="UpdateSession"):
        log.update(**change)
    assert dict(log.update(set_labels={"a": "c"}).session.labels) == callers.label | {"a": "c"}


def listed(stub: Any, **fields: Any) -> set[str]:
    request = service_pb2.ListSessionsRequest(page_size=1_000, **fields)
    return {each.session_id for each in stub.ListSessions(request, timeout=DEADLINE_S).sessions}


def test_listings_show_what_bears_the_labels(callers: Callers) -> None:
    log, hidden = callers.log(), callers.hidden()
    log.append(assistant("", "c"), logs_call("c"))
    fork = log.fork(labels=callers.label)
    assert listed(callers.red) == {log.session_id, fork.session_id}
    assert listed(callers.red, labels={"a": "b"}) == {log.session_id}
    assert listed(callers.red, labels={"team": "blue"}) == set()
    assert listed(callers.red, parent_session_id=log.session_id) == {fork.session_id}
    assert {log.session_id, hidden.session_id} <= listed(callers.whole)
    calls = [c for page in unresolved_pages(callers.red, page_size=1) for c in page.calls]
    assert {each.session_id for each in calls} == {log.session_id}


def test_a_lineage_shows_ancestors_as_far_as_they_bear_the_labels(callers: Callers) -> None:
    hidden = callers.hidden()
    parent = Calls(callers.whole, hidden.session_id).fork(labels=callers.label)
    child = Calls(callers.red, parent.session_id).fork(labels=callers.label)
    assert child.lineage() == [(parent.session_id, 2)]
    assert child.texts() == ["again", "b"]
    assert len(Calls(callers.whole, child.session_id).lineage()) == 2


def test_the_feed_tells_of_what_bears_the_labels(callers: Callers) -> None:
    start = Feed(callers.whole).caught_up()
    hidden, log = callers.hidden(), callers.log()
    log.append(user("a"))
    listed(callers.red)  # waits until the feed has what was written
    feed = Feed(callers.red, after_cursor=start)
    told = [feed.next() for _ in range(3)]
    assert [each.session_id for each in told] == [log.session_id, log.session_id, ""]
    assert told[-1].WhichOneof("kind") == "caught_up"
    Calls(callers.whole, hidden.session_id).append(user("x"))
    log.append(user("b"))
    assert feed.next().event.seq == 1
    feed.cancel()


def test_a_watch_ends_when_its_session_loses_the_labels(callers: Callers) -> None:
    log = callers.log()
    log.append(user("a"))
    watch = log.watch()
    assert next(watch).event.seq == 0
    assert next(watch).HasField("caught_up")
    whole = Calls(callers.whole, log.session_id)
    whole.update(remove_labels=["team"])
    whole.append(user("b"))
    with pytest.raises(grpc.RpcError) as caught:
        next(watch)
    assert refusal_of(caught.value).reason == "SESSION_NOT_FOUND"


def test_a_session_that_gets_the_labels_is_there(callers: Callers) -> None:
    hidden = callers.hidden()
    Calls(callers.whole, hidden.session_id).update(set_labels=callers.label)
    assert hidden.texts() == ["again", "b"]
    assert hidden.append(user("d")).first_seq == 3


def test_a_stream_judges_each_of_its_elements(callers: Callers) -> None:
    log, hidden = callers.log(), callers.hidden()
    elements = [
        service_pb2.AppendStreamRequest(number=n, batch=each.append_request(user("x")))
        for n, each in enumerate((log, hidden, log))
    ]
    answers = {a.number: a for a in callers.red.AppendStream(iter(elements), timeout=DEADLINE_S)}
    assert [answers[n].HasField("appended") for n in range(3)] == [True, False, True]
    assert log.texts() == ["x", "x"]
    assert Calls(callers.whole, hidden.session_id).texts() == ["again", "b"]


def test_what_reaches_the_whole_tenant_is_refused(callers: Callers) -> None:
    with refused("PERMISSION_DENIED", needs="a key without labels"):
        callers.red.CollectAttachments(service_pb2.CollectAttachmentsRequest(), timeout=DEADLINE_S)


def test_comparing_needs_both_sessions(callers: Callers) -> None:
    request = service_pb2.DiffSessionsRequest(
        left_session_id=callers.log().session_id, right_session_id=callers.hidden().session_id
    )
    with refused("SESSION_NOT_FOUND", session_id=request.right_session_id):
        list(callers.red.DiffSessions(request, timeout=DEADLINE_S))


def test_events_say_what_they_always_say(callers: Callers) -> None:
    log = callers.log()
    log.append(user("a"), user("b"))
    assert [each.type for each in log.events()] == [event_pb2.EVENT_TYPE_USER_MESSAGE] * 2
