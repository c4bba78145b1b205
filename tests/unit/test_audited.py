"""What the audit log has."""

from __future__ import annotations

from foldlog.server.permissions import NEEDED, is_audited
from foldlog.v1 import service_pb2

METHODS = service_pb2.DESCRIPTOR.services_by_name["SessionService"].methods_by_name


def test_what_is_audited_has_one_request_and_one_answer() -> None:
    audited = [METHODS[rpc] for rpc in NEEDED if is_audited(rpc)]
    assert {each.name for each in audited} >= {"DeleteSession", "SnapshotSession"}
    assert not [each.name for each in audited if each.client_streaming or each.server_streaming]


def test_an_unknown_call_is_audited() -> None:
    assert is_audited("Later")
