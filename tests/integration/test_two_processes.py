"""Two service processes on one PostgreSQL: what was acknowledged is there once, and both agree."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
from foldlog.v1 import service_pb2 as pb

from tests import postgres
from tests.contract.said import replacing_entries, user
from tests.served import Served

SESSIONS = ["a", "b", "c"]
WORKERS = 6
OPERATIONS = 40


@pytest.fixture
def served(tmp_path: Path) -> Iterator[list[Any]]:
    try:
        with postgres.database() as url:
            servers = []
            for name in ("one", "two"):
                (tmp_path / name).mkdir()
                servers.append(Served(url, tmp_path / name).start())
            yield servers
            for server in servers:
                server.close()
    except postgres.NoPostgresError as error:
        pytest.skip(str(error))


class Worker:
    """A client that does random things to random sessions through random processes."""

    def __init__(self, number: int, stubs: list[Any]) -> None:
        self._random = random.Random(number)
        self._number = number
        self._stubs = stubs
        self.acknowledged: dict[str, dict[int, str]] = defaultdict(dict)
        self.refused: Counter[str] = Counter()

    def work(self) -> None:
        """Do as many operations as were planned."""
        for count in range(OPERATIONS):
            session = self._random.choice(SESSIONS)
            text = f"{self._number}-{count}"
            choice = self._random.random()
            try:
                if choice < 0.7:
                    self._append(session, text)
                elif choice < 0.85:
                    self._replace(session, text)
                else:
                    self._rewind(session)
            except grpc.RpcError as error:
                self.refused[error.code().name] += 1

    def _stub(self) -> Any:
        return self._random.choice(self._stubs)

    def _send(self, request: pb.AppendEventsRequest, text: str) -> None:
        answer = self._stub().AppendEvents(request)
        if self._random.random() < 0.3:
            assert self._stub().AppendEvents(request) == answer
        for seq in range(answer.first_seq, answer.next_seq):
            self.acknowledged[request.session_id][seq] = text

    def _append(self, session: str, text: str) -> None:
        events = [user(text)] * self._random.randint(1, 3)
        request = pb.AppendEventsRequest(session_id=session, request_id=uuid4().hex, events=events)
        self._send(request, text)

    def _replace(self, session: str, text: str) -> None:
        seqs = surface(self._stub(), session)
        if len(seqs) < 3:
            return
        first = self._random.randrange(len(seqs) - 1)
        event = replacing_entries(user(text), seqs[first], seqs[first + 1])
        request = pb.AppendEventsRequest(session_id=session, request_id=uuid4().hex, events=[event])
        self._send(request, text)

    def _rewind(self, session: str) -> None:
        stub = self._stub()
        next_seq = stub.GetSession(pb.GetSessionRequest(session_id=session)).session.next_seq
        if next_seq > 4:
            to_seq = self._random.randrange(next_seq // 2, next_seq)
            stub.RewindSession(pb.RewindSessionRequest(session_id=session, to_seq=to_seq))


def surface(stub: Any, session: str) -> list[int]:
    """Return the seqs on a session's surface."""
    pieces = stub.GetMessages(pb.GetMessagesRequest(session_id=session))
    return [message.seq for piece in pieces for message in piece.messages]


def texts(stub: Any, session: str) -> dict[int, str]:
    """Return the text of each event by seq."""
    found: dict[int, str] = {}
    token = ""
    while True:
        page = stub.ListEvents(pb.ListEventsRequest(session_id=session, page_token=token))
        found |= {event.seq: event.body.message.text for event in page.events}
        token = page.next_page_token
        if not token:
            return found


def test_what_two_processes_acknowledge_is_there_once_and_both_agree(served: list[Any]) -> None:
    stubs = [server.stub for server in served]
    for session in SESSIONS:
        stubs[0].CreateSession(pb.CreateSessionRequest(session_id=session))
    workers = [Worker(number, stubs) for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        for done in [pool.submit(worker.work) for worker in workers]:
            done.result(timeout=300)
    assert set().union(*(worker.refused for worker in workers)) <= {"FAILED_PRECONDITION"}
    for session in SESSIONS:
        stored = texts(stubs[0], session)
        assert sorted(stored) == list(range(len(stored)))
        claims = Counter(seq for worker in workers for seq in worker.acknowledged[session])
        assert max(claims.values()) == 1
        for worker in workers:
            for seq, text in worker.acknowledged[session].items():
                assert stored[seq] == text
        assert surface(stubs[0], session) == surface(stubs[1], session)
        for stub in stubs:
            assert stub.VerifySession(pb.VerifySessionRequest(session_id=session)).intact
