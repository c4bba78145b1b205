"""Connections are cut and servers killed: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import pytest
from foldlog import (
    AppendStream,
    AsyncClient,
    CaughtUp,
    Client,
    Event,
    RetryPolicy,
    Session,
    errors,
    user,
)

from tests.client.proxy import Proxy
from tests.served import Served


def texts(session: Session) -> list[object]:
    """Return what the messages say."""
    return [folded.message.content for folded in session.messages()]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that calls can wait in."""
    with ThreadPoolExecutor() as pool:
        yield pool


def test_an_append_whose_answer_was_lost_is_made_once(
    proxy: Proxy, pool: ThreadPoolExecutor
) -> None:
    with Client(proxy.address) as client:
        session = client.create()
        proxy.mute()
        waiting = pool.submit(session.append, user("once"))
        assert proxy.muted.wait(10)
        proxy.unmute()
        assert waiting.result(20).first_seq == 0
        assert texts(session) == ["once"]


def test_a_create_whose_answer_was_lost_makes_one_session(
    proxy: Proxy, pool: ThreadPoolExecutor
) -> None:
    with Client(proxy.address) as client:
        client.create("warm-up-of-a-connection")
        proxy.mute()
        waiting = pool.submit(client.create, "made-once")
        assert proxy.muted.wait(10)
        proxy.unmute()
        assert waiting.result(20).session_id == "made-once"


def test_a_call_goes_on_over_a_crash_under_its_request_id(
    own: Served, pool: ThreadPoolExecutor
) -> None:
    with Client(own.address) as client:
        session = client.create()
        session.append(user("before"))
        own.kill9()
        waiting = pool.submit(session.append, user("during"), request_id="r1")
        own.start()
        first = waiting.result(30)
        assert session.append(user("during"), request_id="r1") == first
        assert texts(session) == ["before", "during"]
        with pytest.raises(errors.RequestIdReusedError):
            session.append(user("other"), request_id="r1")


def test_an_append_in_batches_that_was_cut_is_finished_under_its_request_id(
    own: Served,
) -> None:
    events = [user(str(i)) for i in range(2_500)]
    with Client(own.address) as client:
        session = client.create()
        session.append(*events[:1_000], request_id="r/0")
        own.restart()
        appended = session.append(*events, request_id="r")
        assert (appended.first_seq, appended.next_seq) == (0, 2_500)
        assert texts(session) == [str(i) for i in range(2_500)]


def test_a_watch_goes_on_over_a_crash_without_gap_or_duplicate(own: Served) -> None:
    with Client(own.address) as client:
        session = client.create()
        session.append(user("0"), user("1"))
        with session.watch() as watch:
            seen = [next(watch), next(watch)]
            assert next(watch) == CaughtUp(2)
            own.restart()
            session.append(user("2"))
            seen.append(next(watch))
            own.restart()
            session.append(user("3"))
            seen.append(next(watch))
        assert [item.seq for item in seen if isinstance(item, Event)] == [0, 1, 2, 3]


def test_the_feed_goes_on_over_a_cut(proxy: Proxy) -> None:
    with Client(proxy.address) as client, client.watch_all(from_now=True) as feed:
        next(feed)
        session = client.create()
        mine = (item.item for item in feed if item.session_id == session.session_id)
        next(mine)
        for number in range(3):
            proxy.cut()
            session.append(user(str(number)))
            event = next(mine)
            assert isinstance(event, Event)
            assert event.seq == number


def test_a_watch_that_is_closed_from_another_thread_ends(
    session: Session, pool: ThreadPoolExecutor
) -> None:
    watch = session.watch()
    assert next(watch) == CaughtUp(0)
    waiting = pool.submit(list, watch)
    watch.close()
    assert waiting.result(10) == []


def test_an_export_that_is_cut_is_whole_in_the_end(proxy: Proxy) -> None:
    with Client(proxy.address) as client:
        session = client.create()
        session.append(user("a"))
        proxy.cut()
        first, second = BytesIO(), BytesIO()
        session.export(first)
        session.export(second)
        assert first.getvalue() == second.getvalue() != b""


def test_a_stream_sends_again_what_a_crash_left_unanswered(own: Served) -> None:
    with Client(own.address) as client:
        sessions = [client.create() for _ in range(3)]
        with client.stream(max_in_flight=32) as stream:
            futures = []
            for number in range(120):
                if number in {30, 80}:
                    own.restart()
                futures += [stream.append(s, user(str(number))) for s in sessions]
            stream.flush()
        assert [future.result(0).first_seq for future in futures[::3]] == list(range(120))
        for session in sessions:
            assert texts(session) == [str(number) for number in range(120)]


def test_a_stream_sends_again_what_was_written_and_not_acknowledged(proxy: Proxy) -> None:
    with Client(proxy.address) as client:
        session = client.create()
        with client.stream() as stream:
            stream.append(session, user("0")).result(10)
            proxy.mute()
            unanswered = stream.append(session, user("1"))
            assert proxy.muted.wait(10)
            later = stream.append(session, user("2"))
            proxy.unmute()
            assert (unanswered.result(20).first_seq, later.result(20).first_seq) == (1, 2)
        assert texts(session) == ["0", "1", "2"]


def test_after_a_refusal_a_stream_waits_for_a_resume(session: Session) -> None:
    other = session.client.create()
    with session.client.stream() as stream:
        refused = stream.append(session, user("a"), expected_next_seq=5)
        later = stream.append(session, user("b"))
        elsewhere = stream.append(other, user("c"))
        with pytest.raises(errors.SeqConflictError):
            refused.result(10)
        with pytest.raises(errors.PreviousBatchFailedError):
            later.result(10)
        assert elsewhere.result(10).first_seq == 0
        with pytest.raises(errors.PreviousBatchFailedError):
            stream.append(session, user("d")).result(10)
        assert stream.resume(session).result(10) is None
        assert stream.append(session, user("e")).result(10).first_seq == 0
    assert texts(session) == ["e"]


def test_a_stream_of_an_unreachable_server_fails_what_it_was_given() -> None:
    with Client("127.0.0.1:1") as client:
        stream = client.stream(max_outage_s=0.3).__enter__()
        future = stream.append(client.session("s"), user("a"))
        with pytest.raises(errors.ConnectionLostError):
            future.result(20)
        with pytest.raises(errors.ConnectionLostError):
            stream.append(client.session("s"), user("b"))
        with pytest.raises(errors.ConnectionLostError):
            stream.close()


def test_a_stream_is_to_be_opened(session: Session) -> None:
    with pytest.raises(errors.ClientClosedError):
        session.client.stream().append(session, user("a"))


def test_a_block_that_raises_ends_its_stream_and_keeps_what_was_acknowledged(
    session: Session,
) -> None:
    with pytest.raises(KeyError), session.client.stream() as stream:
        _append_and_raise(stream, session)
    assert not [t for t in threading.enumerate() if t.name == "foldlog-appends"]
    assert texts(session) == ["a"]


def _append_and_raise(stream: AppendStream, session: Session) -> None:
    stream.append(session, user("a")).result(10)
    raise KeyError("mine")


@pytest.mark.parametrize("settings", [{"timeout_s": 0.3}, {"retry": None}], ids=str)
def test_an_unreachable_server_is_a_lost_connection_in_the_end(settings: Any) -> None:
    with Client("127.0.0.1:1", **settings) as client, pytest.raises(errors.ConnectionLostError):
        client.create()


def test_a_call_that_takes_too_long_is_a_deadline(own: Served) -> None:
    with Client(own.address) as client:
        session = client.create()
        own.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(errors.DeadlineExceededError):
                session.append(user("a"), timeout_s=0.3)
        finally:
            own.process.send_signal(signal.SIGCONT)


async def test_the_asyncio_client_goes_on_over_crashes(own: Served) -> None:
    loop = asyncio.get_running_loop()
    async with AsyncClient(own.address, retry=RetryPolicy(0.02, 0.5)) as client:
        session = await client.create()
        async with session.watch() as watch, client.stream() as stream:
            assert await anext(watch) == CaughtUp(0)
            futures = [await stream.append(session, user("0"))]
            restarting = loop.run_in_executor(None, own.restart)
            futures += [await stream.append(session, user(str(i))) for i in range(1, 50)]
            await restarting
            await stream.flush()
            seqs = [(await anext(watch)).seq for _ in range(50)]  # type: ignore[union-attr]
        assert seqs == list(range(50))
        assert [future.result().first_seq for future in futures] == list(range(50))
        assert len(await session.messages()) == 50
