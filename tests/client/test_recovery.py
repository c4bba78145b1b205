"""Taking sessions over after a crash, with both clients."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import foldlog
import pytest
from foldlog import CallRisk, OwedCall

from tests.client import killed_worker
from tests.served import Served


@pytest.fixture
def client(served: Served) -> Iterator[foldlog.Client]:
    """A client of the backend's server."""
    with foldlog.Client(served.address) as client:
        yield client


@pytest.fixture
def session(client: foldlog.Client) -> foldlog.Session:
    """A session whose worker died in a step of a turn."""
    session = client.create(f"s-{uuid4().hex}")
    session.append(
        foldlog.turn_start(1),
        foldlog.user("q"),
        foldlog.request_header(foldlog.Header(model="m")),
        foldlog.step_start(1),
        foldlog.assistant("", tool_calls=[foldlog.ToolCall("c", "f", "{}")]),
    )
    return session


def killed_between_dispatch_and_result(served: Served, session_id: str, effects: Path) -> None:
    """Run a worker and kill it after the tool had its effect, before its result is logged."""
    command = [sys.executable, killed_worker.__file__, served.address, session_id, str(effects)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"dispatched\n"
        worker.kill()
    assert worker.returncode == -signal.SIGKILL


def test_a_worker_killed_between_dispatch_and_result_is_recovered(
    served: Served, client: foldlog.Client, tmp_path: Path
) -> None:
    session_id = client.create(f"s-{uuid4().hex}").session_id
    killed_between_dispatch_and_result(served, session_id, tmp_path / "effects")
    assert (tmp_path / "effects").read_text() == "charged 10"

    plan = client.session(session_id).plan_recovery()
    assert plan.interrupted
    assert plan.owed_calls == (
        OwedCall("c1", "charge", 4, CallRisk.OUTCOME_UNKNOWN, "charge-1"),
        OwedCall("c2", "charge", 4, CallRisk.NOT_STARTED),
    )
    (unresolved,) = client.unresolved_calls(session_id)
    assert (unresolved.call_id, unresolved.idempotency_key) == ("c1", "charge-1")

    session = client.restore(session_id, "the second worker")
    assert session.recovery is not None
    assert session.recovery.plan == plan
    assert session.recovery.header == foldlog.Header(provider="p", model="m")
    assert list(client.unresolved_calls(session_id)) == []
    request = [each.message for each in session.recovery.messages]
    assert [message.tool_call_id for message in request if message.tool_call_id] == ["c1", "c2"]
    session.append(foldlog.turn_start(2), foldlog.user("what happened?"))
    request.append(foldlog.user("what happened?"))
    assert session.check(request, header=session.recovery.header).ok
    assert session.check(request, report_unanswered_calls=True).ok


def test_restore_gives_all_that_a_new_worker_needs(
    client: foldlog.Client, session: foldlog.Session
) -> None:
    restored = client.restore(session.session_id)
    assert restored.writer_epoch == 1
    assert restored.next_seq == 8
    assert restored.recovery is not None
    assert restored.recovery.closing_seqs == (5, 6, 7)
    assert restored.recovery.header == foldlog.Header(model="m")
    assert [each.seq for each in restored.recovery.messages] == [1, 4, 5]
    restored.append(foldlog.user("on"))
    with pytest.raises(foldlog.errors.WriterEpochRequiredError):
        session.append(foldlog.user("late"))


def test_restore_may_leave_open_what_is_open(
    client: foldlog.Client, session: foldlog.Session
) -> None:
    restored = client.restore(session.session_id, close_open_turns=False)
    assert restored.recovery is not None
    assert restored.recovery.closing_seqs == ()
    restored.append(foldlog.tool_result("r", tool_call_id="c"))
    assert restored.plan_recovery().owed_calls == ()


def test_a_lost_takeover_raises(client: foldlog.Client, session: foldlog.Session) -> None:
    client.restore(session.session_id, expected_epoch=0)
    with pytest.raises(foldlog.errors.StaleWriterError):
        client.restore(session.session_id, expected_epoch=0)


def test_recovering_twice_under_one_request_id_is_once(session: foldlog.Session) -> None:
    first = session.recover(request_id="r")
    assert session.recover(request_id="r") == first
    assert session.writer_epoch == 1


def test_suggested_ranges_fit_replacing(session: foldlog.Session) -> None:
    session.recover()
    suggested = session.suggest_range(4, 4)
    assert suggested == foldlog.SuggestedRange(4, 5, 4, 5, 2)
    summary = foldlog.replacing(
        foldlog.system("S"), first_seq=suggested.first_seq, last_seq=suggested.last_seq
    )
    session.append(summary, require_balanced=True)
    assert [each.seq for each in session.messages()] == [1, 8]


def test_no_range_is_none(session: foldlog.Session) -> None:
    assert session.suggest_range(1, 4) is None


def test_a_trim_is_sent_as_one(session: foldlog.Session) -> None:
    session.append(foldlog.tool_result("long", tool_call_id="c", name="f"))
    short = foldlog.tool_result("s", tool_call_id="c")
    with pytest.raises(foldlog.errors.InvalidFieldError, match="name"):
        session.append(foldlog.replacing(short, first_seq=5, last_seq=5, trim=True))
    named = foldlog.tool_result("s", tool_call_id="c", name="f")
    session.append(foldlog.replacing(named, start=5, stop=5, trim=True))
    assert [each.message.content for each in session.messages()] == ["q", "", "s"]


async def test_the_asyncio_client_recovers_too(served: Served, session: foldlog.Session) -> None:
    session.append(foldlog.tool_call("c", name="f", idempotency_key="k"))
    async with foldlog.AsyncClient(served.address) as client:
        calls = [call async for call in client.unresolved_calls(session.session_id)]
        assert [(call.seq, call.idempotency_key) for call in calls] == [(5, "k")]
        assert (await client.session(session.session_id).plan_recovery()).interrupted
        restored = await client.restore(session.session_id)
        assert restored.writer_epoch == 1
        assert restored.recovery is not None
        assert len(restored.recovery.messages) == 3
        assert await restored.suggest_range(1, 1) == foldlog.SuggestedRange(1, 1, 1, 1, 1)
