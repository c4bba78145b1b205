"""The table of who may make which call."""

from __future__ import annotations

import pytest
from foldlog.application.scope import Scope
from foldlog.core.errors import PermissionDeniedError
from foldlog.core.role import Role
from foldlog.server.callers import Caller
from foldlog.server.permissions import NEEDED, OF_WHOLE_TENANT, require_permitted
from foldlog.v1 import service_pb2

RPCS = {each.name for each in service_pb2.DESCRIPTOR.services_by_name["SessionService"].methods}
LABELLED = Scope(frozenset({("team", "red")}))


def test_every_call_of_the_service_has_a_row() -> None:
    assert NEEDED.keys() == RPCS
    assert OF_WHOLE_TENANT <= RPCS


def test_what_ends_or_drops_something_is_for_admins() -> None:
    ending = {"DeleteSession", "SnapshotSession", "CollectAttachments"}
    assert ending <= {name for name, role in NEEDED.items() if role is Role.ADMIN}


@pytest.mark.parametrize("role", Role)
def test_a_role_may_all_that_the_one_before_may_and_no_more(role: Role) -> None:
    for rpc, needed in NEEDED.items():
        if role >= needed:
            require_permitted(Caller("t", role), rpc)
            continue
        with pytest.raises(PermissionDeniedError) as caught:
            require_permitted(Caller("t", role), rpc)
        assert caught.value.facts == {"action": rpc, "needs": f"the role {needed.label}"}


def test_an_unknown_call_is_for_admins() -> None:
    require_permitted(Caller("t", Role.ADMIN), "Later")
    with pytest.raises(PermissionDeniedError):
        require_permitted(Caller("t", Role.WRITER), "Later")


@pytest.mark.parametrize("rpc", sorted(OF_WHOLE_TENANT))
def test_what_reaches_every_session_is_not_for_keys_with_labels(rpc: str) -> None:
    with pytest.raises(PermissionDeniedError, match="without labels"):
        require_permitted(Caller("t", Role.ADMIN, LABELLED), rpc)


def test_roles_have_names() -> None:
    assert [Role.of(name) for name in ("reader", "writer", "admin")] == list(Role)
    with pytest.raises(ValueError, match="one of reader, writer, admin, not 'root'"):
        Role.of("root")
