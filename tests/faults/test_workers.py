"""Several server processes on one port: spread, begun again, ended together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import grpc
import pytest
from foldlog.v1 import service_pb2, service_pb2_grpc

from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.said import user
from tests.served import Served

WORKERS = 2
TRIES = 40  # of connections, each of which half of the workers may get


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    """A service of several processes."""
    return serve("postgres", FOLDLOG_WORKERS=str(WORKERS))


def workers_of(served: Served) -> set[int]:
    """Return the processes that a service's process has begun."""
    pid = served.process.pid
    return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def is_running(pid: int) -> bool:
    """Tell whether a process is there, and not only remembered."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Let a process do nothing for the time of a block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def answers(served: Served, session_id: str) -> bool:
    """Tell whether a new connection to the service is answered."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    with closing(grpc.insecure_channel(served.address, options=own)) as channel:
        stub = service_pb2_grpc.SessionServiceStub(channel)
        try:
            stub.GetSession(service_pb2.GetSessionRequest(session_id=session_id), timeout=1)
        except grpc.RpcError:
            return False
        return True


def test_each_of_them_serves(served: Served) -> None:
    log = Calls.create(served.stub)
    workers = workers_of(served)
    assert len(workers) == WORKERS
    for pid in workers:
        with stopped(pid):
            assert any(answers(served, log.session_id) for _ in range(TRIES))


def test_one_that_is_killed_is_begun_again_and_nothing_is_lost(served: Served) -> None:
    log = Calls.create(served.stub)
    texts = [f"message {number}" for number in range(30)]
    for text in texts[:15]:
        log.append(user(text))
    before = workers_of(served)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: len(workers_of(served) - before) == WORKERS)
    eventually(lambda: answers(served, log.session_id))
    for text in texts[15:]:
        log.append(user(text))
    assert log.texts() == texts
    assert log.verify().intact


def test_they_end_together(served: Served) -> None:
    Calls.create(served.stub)
    workers = workers_of(served)
    assert served.terminate() == 0
    assert not any(map(is_running, workers))


def test_none_of_them_outlives_the_one_that_began_them(served: Served) -> None:
    log = Calls.create(served.stub)
    log.append(user("before"))
    workers = workers_of(served)
    served.kill9()
    eventually(lambda: not any(map(is_running, workers)))
    served.start()
    log.append(user("after"))
    assert log.texts() == ["before", "after"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_port_is_shared_with_nobody_else(served: Served, workers: str) -> None:
    environment = served.process_environment() | {"FOLDLOG_WORKERS": workers}
    command = [sys.executable, "-m", "foldlog", "serve", "--listen", served.address]
    command += ["--database-url", served.database_url]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert found.returncode == 2
    assert f"cannot listen on {served.address}" in found.stderr


def test_what_is_wrong_is_said_once(served: Served) -> None:
    environment = served.process_environment() | {
        "FOLDLOG_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"
    }
    command = [sys.executable, "-m", "foldlog", "serve", "--listen", "127.0.0.1:0"]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert found.returncode != 0
    assert found.stderr.count("the database cannot be used") == 1


def test_a_sqlite_file_is_for_one_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "foldlog", "serve", "--workers", "2"]
    command += ["--database-url", f"sqlite:///{tmp_path / 'foldlog.db'}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert found.returncode == 2
    assert "2 workers need PostgreSQL" in found.stderr
    assert list(tmp_path.iterdir()) == []
