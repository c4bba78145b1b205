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
from foldlog.v1 import event_pb2
from foldlog.v1 import service_pb2 as pb

from tests import postgres
from tests.contract.said import replacing_entries, user
from tests.served import Served

SESSIONS = ["a", "b", "c"]
WORKERS = 6
OPERATIONS = 40


@pytest.fixture
def served(tmp_path: Path) -> Iterator[list[Any]]:
    with postgres.database() as url:
        servers = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            servers.append(Served(url, tmp_path / name).start())
        yield servers
        for server in servers:
            server.close()


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
                if choice < 0.6:
                    self._append(session, text)
                elif choice < 0.8:
                    self._replace(session, text)
                elif choice < 0.85:
                    self._restore(session)
                elif choice < 0.95:
                    self._look(session)
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

    def _restore(self, session: str) -> None:
        """Put events above the head, with a gap, beside what the other process appends."""
        stub = self._stub()
        next_seq = stub.GetSession(pb.GetSessionRequest(session_id=session)).session.next_seq
        header = pb.RestoreHeader(session_id=session, request_id=uuid4().hex)
        events = [event_pb2.Event(seq=next_seq + 2 + n, body=user("r").body) for n in range(3)]
        stub.RestoreEvents(
            iter(
                (
                    pb.RestoreEventsRequest(header=header),
                    pb.RestoreEventsRequest(batch=pb.RestoreBatch(events=events)),
                )
            )
        )

    def _look(self, session: str) -> None:
        """Read the fold now and at the head: no seq twice, none past what was asked for."""
        stub = self._stub()
        seqs = surface(stub, session)
        assert len(set(seqs)) == len(seqs)
        next_seq = stub.GetSession(pb.GetSessionRequest(session_id=session)).session.next_seq
        assert max(surface(stub, session, next_seq - 1), default=-1) < next_seq

    def _rewind(self, session: str) -> None:
        stub = self._stub()
        next_seq = stub.GetSession(pb.GetSessionRequest(session_id=session)).session.next_seq
        if next_seq > 4:
            to_seq = self._random.randrange(next_seq // 2, next_seq)
            stub.RewindSession(pb.RewindSessionRequest(session_id=session, to_seq=to_seq))


def surface(stub: Any, session: str, at_seq: int | None = None) -> list[int]:
    """Return the seqs on a session's surface, now or after a seq."""
    pieces = stub.GetMessages(pb.GetMessagesRequest(session_id=session, at_seq=at_seq))
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
        assert list(stored) == sorted(stored)
        claims = Counter(seq for worker in workers for seq in worker.acknowledged[session])
        assert max(claims.values()) == 1
        for worker in workers:
            for seq, text in worker.acknowledged[session].items():
                assert stored[seq] == text
        assert surface(stubs[0], session) == surface(stubs[1], session)
        for stub in stubs:
            assert stub.VerifySession(pb.VerifySessionRequest(session_id=session)).intact
