"""A snapshot beside rewinds and forks: whoever comes first, nothing that counts loses its body."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import grpc
import pytest
from foldlog.v1 import service_pb2

from tests.contract.calls import Calls, fresh_id
from tests.contract.refusal import refusal_of
from tests.contract.said import replacing, system, user

ROUNDS = 12


def _together(*calls: Callable[[], object]) -> list[object]:
    """Make calls at once and return each one's answer, or the error it met."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], object]) -> object:
        barrier.wait()
        try:
            return call()
        except grpc.RpcError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def _compacted(log: Calls, texts: list[str]) -> None:
    log.append(*(user(text) for text in texts))
    log.append(replacing(system("S"), 0, len(texts) - 1))


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_rewind_beside_a_snapshot_keeps_its_messages_or_is_refused(
    log: Calls, round_: int
) -> None:
    texts = ["a", "b", "c", "d"]
    _compacted(log, texts)
    calls: list[Callable[[], object]] = [log.snapshot, lambda: log.rewind(3)]
    _, rewound = _together(*(calls if round_ % 2 else reversed(calls)))[:: 1 if round_ % 2 else -1]
    if isinstance(rewound, grpc.RpcError):
        assert refusal_of(rewound).reason == "HISTORY_DROPPED"
        assert log.texts() == ["S"]
    else:
        assert log.texts() == texts
    assert log.verify().intact


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_a_fork_beside_a_snapshot_reads_its_messages_or_is_refused(log: Calls, round_: int) -> None:
    texts = ["a", "b", "c", "d"]
    _compacted(log, texts)
    child = fresh_id()

    def fork() -> object:
        request = service_pb2.ForkSessionRequest(
            session_id=log.session_id, child_session_id=child, at_seq=3
        )
        return log.stub.ForkSession(request, timeout=30)

    calls: list[Callable[[], object]] = [log.snapshot, fork]
    _, forked = _together(*(calls if round_ % 2 else reversed(calls)))[:: 1 if round_ % 2 else -1]
    if isinstance(forked, grpc.RpcError):
        assert refusal_of(forked).reason == "HISTORY_DROPPED"
    else:
        assert log.other(child).texts() == texts
    assert log.texts() == ["S"]
