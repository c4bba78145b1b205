"""The asyncio client against a real server: each way of calling."""

from __future__ import annotations

import asyncio
import io

import pytest
from foldlog import (
    AsyncClient,
    AsyncSession,
    CaughtUp,
    Deleted,
    Event,
    assistant,
    errors,
    placed,
    user,
)


async def test_what_was_appended_is_what_the_model_sees(async_session: AsyncSession) -> None:
    await async_session.append(user("a"), assistant("b"))
    folded = await async_session.messages()
    assert [each.message for each in folded] == [user("a"), assistant("b")]
    assert (await async_session.check([*folded])).ok
    assert [event.seq async for event in async_session.events()] == [0, 1]


async def test_refusals_have_their_class(async_session: AsyncSession) -> None:
    with pytest.raises(errors.SeqConflictError):
        await async_session.append(user("a"), expected_next_seq=7)
    assert await async_session.try_append(user("a"), expected_next_seq=7) is None


async def test_many_calls_run_at_once(async_session: AsyncSession) -> None:
    appended = await asyncio.gather(*(async_session.append(user(str(i))) for i in range(40)))
    assert sorted(each.first_seq for each in appended) == list(range(40))


async def test_a_fork_belongs_to_the_asyncio_client(async_session: AsyncSession) -> None:
    await async_session.append(user("a"))
    child = await async_session.fork()
    assert isinstance(child, AsyncSession)
    await child.append(user("b"))
    assert (await async_session.diff(child)).common_count == 1


async def test_uploads_and_downloads(
    async_session: AsyncSession, async_client: AsyncClient
) -> None:
    await async_session.restore([placed(user(str(i)), i * 2) for i in range(1_200)])
    file = io.BytesIO()
    await async_session.export(file)
    file.seek(0)
    copy = await async_client.import_session(file, f"{async_session.session_id}-copy")
    assert len(await copy.messages()) == 1_200
    with pytest.raises(errors.InvalidFieldError):
        await copy.restore([placed(user("\ud800"), 5_000)])
    assert (await copy.info()).next_seq == 2_399


async def test_a_watch_catches_up_and_goes_on(async_session: AsyncSession) -> None:
    await async_session.append(user("a"))
    async with async_session.watch() as watch:
        first = await anext(watch)
        assert isinstance(first, Event)
        assert await anext(watch) == CaughtUp(1)
        waiting = asyncio.create_task(_next(watch))
        await async_session.append(user("b"))
        second = await waiting
        assert isinstance(second, Event)
        assert second.body == user("b")
        await async_session.delete()
        assert [item async for item in watch] == [Deleted()]


async def _next(watch: object) -> object:
    return await anext(watch)  # type: ignore[call-overload]


async def test_a_watch_that_is_closed_ends(async_session: AsyncSession) -> None:
    watch = async_session.watch()
    assert await anext(watch) == CaughtUp(0)
    waiting = asyncio.create_task(_rest(watch))
    await async_session.append(user("a"))
    watch.close()
    assert await waiting in ([], [0])


async def _rest(watch: object) -> list[int]:
    return [item.seq async for item in watch]  # type: ignore[attr-defined]


async def test_a_cancelled_task_cancels_its_call(async_session: AsyncSession) -> None:
    watch = async_session.watch()
    await anext(watch)
    waiting = asyncio.create_task(_next(watch))
    await asyncio.wait([waiting], timeout=0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await async_session.append(user("a"))).first_seq == 0


async def test_after_a_refusal_a_stream_waits_for_a_resume(async_session: AsyncSession) -> None:
    async with async_session.client.stream() as stream:
        refused = await stream.append(async_session, user("a"), expected_next_seq=5)
        later = await stream.append(async_session, user("b"))
        with pytest.raises(errors.SeqConflictError):
            await refused
        with pytest.raises(errors.PreviousBatchFailedError):
            await later
        await (await stream.resume(async_session))
        await stream.append(async_session, user("c"))
    assert len(await async_session.messages()) == 1


async def test_a_stream_waits_while_too_many_are_unanswered(async_session: AsyncSession) -> None:
    async with async_session.client.stream(max_in_flight=2) as stream:
        futures = [await stream.append(async_session, user(str(i))) for i in range(50)]
        assert sum(not future.done() for future in futures) <= 2
    assert [future.result().first_seq for future in futures] == list(range(50))


async def test_closing_the_client_ends_what_is_under_way(async_client: AsyncClient) -> None:
    session = await async_client.create()
    watch = session.watch()
    await anext(watch)
    waiting = asyncio.create_task(_next(watch))
    await session.append(user("a"))
    await waiting
    waiting = asyncio.create_task(_next(watch))
    await asyncio.wait([waiting], timeout=0.05)
    await async_client.close()
    with pytest.raises(errors.ClientClosedError):
        await waiting


async def test_a_closed_client_says_so(async_client: AsyncClient) -> None:
    session = await async_client.create()
    await async_client.close()
    with pytest.raises(errors.ClientClosedError):
        await session.append(user("a"))
