"""Steps begun through two processes at once: each is answered with a request that was the log's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import postgres
from tests.contract.calls import Calls
from tests.contract.requesting import (
    HEADER,
    Begun,
    begin,
    explained,
    rebuilt,
    record,
    sent_of,
    verified,
)
from tests.contract.said import assistant, user
from tests.served import Served

WORKERS, STEPS = 4, 10


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Served]]:
    """Two processes on one database."""
    with postgres.database() as url:
        servers = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            servers.append(Served(url, tmp_path / name).start())
        yield servers
        for server in servers:
            server.close()


def test_steps_of_two_processes_are_in_one_order(both: list[Served]) -> None:
    first = Calls.create(both[0].stub)
    begin(first, header=HEADER)
    logs = [Calls(served.stub, first.session_id) for served in both]

    def work(worker: int) -> list[Begun]:
        log, begun = logs[worker % 2], []
        for number in range(STEPS):
            begun.append(begin(log, user(f"{worker}.{number}"), header=HEADER))
            record(log, sent_of(begun[-1].request))
            log.append(assistant(f"{worker}.{number}"))
        return begun

    with ThreadPoolExecutor(WORKERS) as pool:
        steps = [each for found in pool.map(work, range(WORKERS)) for each in found]
    assert len({each.step.step_seq for each in steps}) == WORKERS * STEPS
    for each in steps:
        assert each.step.extends_previous
        assert not each.step.wrote_header
        assert rebuilt(first, step_seq=each.step.step_seq, independent=True) == each.request
    answer = verified(logs[1])
    assert (answer.verified_count, len(answer.mismatches)) == (WORKERS * STEPS, 0)
    assert not explained(first).changes
    assert first.verify().intact
