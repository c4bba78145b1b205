"""The audit log: what admins and keys did, in a session that nobody else writes to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from foldlog.core.role import Role
from foldlog.server.permissions import NEEDED
from foldlog.v1 import service_pb2

from tests.cli.shell import Shell
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.naming_sessions import naming, outcome
from tests.contract.refusal import refused
from tests.contract.said import user
from tests.contract.test_feed import Feed
from tests.contract.test_labels import listed
from tests.keyed import caller, make_key, stub_of
from tests.served import Served

AUDIT = "foldlog:audit"
# Calls that read: an admin makes them of the audit log as of any session.
READING = {rpc for rpc, role in NEEDED.items() if role is Role.READER}


def acts(stub: Any) -> list[dict[str, Any]]:
    """Return what an audit log says, event by event."""
    events = Calls(stub, AUDIT).events()
    assert {each.body.custom.kind for each in events} <= {"foldlog.audit"}
    return [json.loads(each.body.custom.payload) for each in events]


def in_short(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Return (act, phase, outcome) of each."""
    return [(each["act"], each["phase"], each.get("outcome", "")) for each in found]


def test_what_an_admin_does_is_there_before_it_is_told(guarded: Served) -> None:
    tenant = fresh_id("t")
    token = make_key(guarded.database_url, Role.ADMIN, tenant)
    stub = stub_of(guarded, token)
    log = Calls.create(stub)
    log.append(user("a"))
    log.snapshot(request_id="r")
    log.delete()
    with refused("SESSION_NOT_FOUND"):
        log.other("none").delete()
    found = acts(stub)
    assert in_short(found) == [
        ("SnapshotSession", "begun", ""),
        ("SnapshotSession", "ended", "ok"),
        ("DeleteSession", "begun", ""),
        ("DeleteSession", "ended", "ok"),
        ("DeleteSession", "begun", ""),
        ("DeleteSession", "ended", "SESSION_NOT_FOUND"),
    ]
    assert {each["by"] for each in found} == {f"key {token.split('_')[1]}"}
    assert found[0]["on"] == {"session_id": log.session_id, "request_id": "r"}
    assert len({each["call"] for each in found}) == 3
    assert Calls(stub, AUDIT).verify().intact


def test_who_may_not_is_not_in_it(guarded: Served) -> None:
    tenant = fresh_id("t")
    log = Calls.create(caller(guarded, Role.WRITER, tenant))
    with refused("PERMISSION_DENIED"):
        log.delete()
    with refused("SESSION_NOT_FOUND"):
        acts(caller(guarded, Role.ADMIN, tenant))


def test_nobody_writes_to_it(guarded: Served) -> None:
    stub = caller(guarded, Role.ADMIN, fresh_id("t"))
    for is_there in (False, True):
        for rpc in sorted(NEEDED.keys() - READING):
            elements = naming(rpc, AUDIT)
            if elements:
                said = outcome(stub, rpc, elements, AUDIT)
                assert "PERMISSION_DENIED" in said, (rpc, is_there, said)
        for make in (
            lambda: Calls.create(stub, AUDIT),
            lambda: Calls.create(stub).fork(child=AUDIT),
            lambda: imported(stub, Calls.create(stub).export(), AUDIT),
        ):
            with refused("PERMISSION_DENIED", needs="the service itself"):
                make()
        Calls.create(stub).delete()
    asked = {"SnapshotSession", "DeleteSession", "EraseSession"}
    assert {(act, end) for act, phase, end in in_short(acts(stub)) if phase == "ended"} == {
        *((act, "PERMISSION_DENIED") for act in asked),
        ("DeleteSession", "ok"),
    }


def test_admins_read_it_as_any_session(guarded: Served) -> None:
    stub = caller(guarded, Role.ADMIN, fresh_id("t"))
    log = Calls.create(stub)
    log.delete()
    audit = Calls(stub, AUDIT)
    watch = audit.watch()
    assert [next(watch).event.seq for _ in range(2)] == [0, 1]
    assert next(watch).HasField("caught_up")
    Calls.create(stub).delete()
    assert next(watch).event.seq == 2
    assert audit.export().count(b"\n") >= 4
    assert AUDIT in listed(stub)
    assert AUDIT in _told(stub)


def _told(stub: Any) -> set[str]:
    feed, found = Feed(stub), set[str]()
    while (element := feed.next()).WhichOneof("kind") != "caught_up":
        found.add(element.session_id)
    feed.cancel()
    return found


@pytest.mark.parametrize("label", [{}, {"team": "red"}], ids=["no labels", "labels"])
@pytest.mark.parametrize("role", [Role.READER, Role.WRITER], ids=lambda role: role.label)
def test_to_others_it_is_absent(guarded: Served, role: Role, label: dict[str, str]) -> None:
    tenant = fresh_id("t")
    admin = caller(guarded, Role.ADMIN, tenant)
    Calls.create(admin).delete()
    stub = caller(guarded, role, tenant, **label)
    for rpc in sorted(READING):
        if naming(rpc, AUDIT):
            absent = fresh_id()
            both = [outcome(stub, rpc, naming(rpc, each), each) for each in (AUDIT, absent)]
            assert both[0] == both[1], rpc
    assert AUDIT not in listed(stub)
    assert AUDIT not in _told(stub)


def test_an_admin_with_labels_does_not_see_it(guarded: Served) -> None:
    tenant = fresh_id("t")
    Calls.create(caller(guarded, Role.ADMIN, tenant)).delete()
    with refused("SESSION_NOT_FOUND"):
        acts(caller(guarded, Role.ADMIN, tenant, team="red"))


def test_making_and_revoking_keys_is_in_it_while_a_service_runs(guarded: Served) -> None:
    tenant, shell = fresh_id("t"), Shell(guarded.address)
    made = ("keys", "create", "--database-url", guarded.database_url, "--tenant", tenant)
    admin = shell.ok(*made, "--role", "admin").strip()
    stub = stub_of(guarded, admin)
    assert in_short(acts(stub)) == [("CreateKey", "begun", ""), ("CreateKey", "ended", "ok")]
    Calls.create(stub).delete()
    reader = shell.ok(*made, "--role", "reader", "--label", "a=b").split("_")[1]
    shell.ok("keys", "revoke", reader, "--database-url", guarded.database_url)
    found = acts(stub)
    assert [act for act, phase, _ in in_short(found) if phase == "begun"] == [
        "CreateKey",
        "DeleteSession",
        "CreateKey",
        "RevokeKey",
    ]
    assert found[-2]["on"] == {"key": reader, "role": "reader", "labels": {"a": "b"}, "name": ""}
    assert admin.split("_")[2] not in json.dumps(found)
    assert Calls(stub, AUDIT).verify().intact


def test_the_command_shows_acts_with_their_outcomes(guarded: Served) -> None:
    token = make_key(guarded.database_url, Role.ADMIN, fresh_id("t"))
    shell = Shell(guarded.address)
    assert shell.run("audit", FOLDLOG_API_KEY=token).stdout == ""
    stub = stub_of(guarded, token)
    log = Calls.create(stub)
    log.delete()
    with refused("SESSION_NOT_FOUND"):
        log.other("none").delete()
    printed = shell.run("audit", "--json", FOLDLOG_API_KEY=token).stdout.splitlines()
    found = [json.loads(line) for line in printed]
    assert [each["outcome"] for each in found] == ["ok", "SESSION_NOT_FOUND"]
    assert found[0]["on"] == {"session_id": log.session_id}
    newest = shell.run("audit", "--limit", "1", FOLDLOG_API_KEY=token).stdout
    assert "SESSION_NOT_FOUND" in newest
    assert log.session_id not in newest
    assert shell.run("audit", "--since", "2100-01-01", FOLDLOG_API_KEY=token).stdout == ""


def test_without_keys_nobody_is_named_and_nothing_is_kept(memory: Served) -> None:
    Calls.create(memory.stub).delete()
    request = service_pb2.GetSessionRequest(session_id=AUDIT)
    with refused("SESSION_NOT_FOUND"):
        memory.stub.GetSession(request, timeout=DEADLINE_S)
    with refused("PERMISSION_DENIED"):
        Calls.create(memory.stub, AUDIT)


def test_an_act_is_not_done_that_cannot_be_noted(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file", FOLDLOG_AUTH="keys")
    stub = caller(served)
    log = Calls.create(stub)
    Calls.create(stub).delete()  # the audit log is there
    _damage(served, AUDIT)
    served.restart("graceful")
    with refused("EVENT_CORRUPT"):
        log.delete()
    assert log.get().session_id == log.session_id


def _damage(served: Served, session_id: str) -> None:
    """Overwrite the first row of a session behind the service's back."""
    import sqlite3

    from foldlog.application.identity import aggregate_id

    path = served.database_url.removeprefix("sqlite:///")
    key = aggregate_id("default", session_id).bytes
    with sqlite3.connect(path) as connection:
        sql = "UPDATE foldlog_events SET state = x'ff' WHERE originator_id = ?"
        assert connection.execute(sql, [key]).rowcount
    connection.close()
