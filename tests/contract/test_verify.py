"""Recomputing the chain."""

from __future__ import annotations

import pytest
from foldlog.v1 import service_pb2

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import Calls
from tests.contract.said import batches, replacing, system, user
from tests.served import Served


def test_a_session_is_intact(log: Calls) -> None:
    log.append(user("a"), user("b"))
    log.update(set_labels={"a": "1"})
    answer = log.verify()
    assert answer.intact
    assert (answer.row_count, answer.next_seq, list(answer.faults)) == (4, 2, [])
    assert len(answer.chain) == 32


def test_events_carry_the_chain(log: Calls) -> None:
    log.append(user("a"), user("b"))
    chains = [each.chain for each in log.events()]
    assert [len(each) for each in chains] == [32, 32]
    assert chains[1] == log.verify().chain
    assert chains[0] != chains[1]


def test_equal_sessions_have_different_chains(log: Calls) -> None:
    other = Calls.create(log.stub)
    for each in (log, other):
        each.append(user("a"))
    assert log.verify().chain != other.verify().chain


def test_a_fork_is_verified_through_its_lineage(log: Calls) -> None:
    log.append(user("a"), user("b"))
    child = log.fork(0)
    child.append(user("c"))
    answer = child.fork().verify()
    assert answer.intact
    assert answer.row_count == 5


def test_snapshots_rewinds_and_replaces_stay_intact(log: Calls) -> None:
    log.append(user("a"), user("b"), replacing(system("S"), 0, 1), user("c"))
    log.snapshot()
    log.rewind(2)
    log.snapshot()
    assert log.verify().intact


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_a_chain_is_the_same_after_a_restart(log: Calls, served: Served) -> None:
    for batch in batches([user(str(i)) for i in range(1200)]):
        log.append(*batch)
    before = log.verify()
    served.restart()
    after = log.verify()
    assert after == before
    assert after.intact
    log.append(user("x"))
    assert log.verify().intact


def test_verifying_needs_a_session(log: Calls) -> None:
    answer = log.stub.VerifySession(service_pb2.VerifySessionRequest(session_id=log.session_id))
    assert answer.intact
    assert answer.row_count == 1
