"""The client against a service that asks for keys."""

from __future__ import annotations

import pytest
from foldlog import AsyncClient, Client, Event, errors, user
from foldlog.core.role import Role

from tests.conftest import SERVED, Servers
from tests.contract.calls import fresh_id
from tests.keyed import make_key
from tests.served import Served


@pytest.fixture
def served(servers: Servers, request: pytest.FixtureRequest) -> Served:
    """The server that asks for keys."""
    found = servers.guarded("sqlite-file")
    request.node.stash.setdefault(SERVED, []).append(found)
    return found


def test_every_kind_of_call_carries_the_key(served: Served) -> None:
    key = make_key(served.database_url)
    with Client(served.address, api_key=key) as client:
        session = client.create(fresh_id())
        session.append(user("a"))
        with client.stream() as stream:
            stream.append(session, user("b"))
        assert [each.message.content for each in session.messages()] == ["a", "b"]
        attachment = client.put_attachment(b"x")
        assert client.read_attachment(attachment.sha256) == b"x"
        assert isinstance(next(iter(session.watch())), Event)


async def test_every_kind_of_asynchronous_call_carries_the_key(served: Served) -> None:
    key = make_key(served.database_url)
    async with AsyncClient(served.address, api_key=key) as client:
        session = await client.create(fresh_id())
        await session.append(user("a"))
        async with client.stream() as stream:
            await stream.append(session, user("b"))
        assert [each.message.content for each in await session.messages()] == ["a", "b"]
        attachment = await client.put_attachment(b"x")
        assert await client.read_attachment(attachment.sha256) == b"x"
        async for event in session.watch():
            assert isinstance(event, Event)
            break


def test_the_environment_holds_the_key(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLOG_API_KEY", make_key(served.database_url))
    with Client(served.address) as client:
        client.create(fresh_id())
    with Client(served.address, api_key="") as client, pytest.raises(errors.UnauthenticatedError):
        client.create(fresh_id())


@pytest.mark.parametrize("wanted", ["no key", "another role"])
def test_a_refusal_is_typed_and_not_tried_again(served: Served, wanted: str) -> None:
    key = "" if wanted == "no key" else make_key(served.database_url, Role.READER)
    with Client(served.address, api_key=key, timeout_s=600) as client:
        if not key:
            with pytest.raises(errors.UnauthenticatedError):
                client.create(fresh_id())
            return
        with pytest.raises(errors.PermissionDeniedError) as caught:
            client.create(fresh_id())
    assert (caught.value.action, caught.value.needs) == ("CreateSession", "the role writer")


def test_a_stream_that_is_refused_says_so(served: Served) -> None:
    said: list[BaseException | None] = []
    with (
        Client(served.address, api_key="") as client,
        pytest.raises(errors.UnauthenticatedError),  # an append may tell it, and leaving does
        client.stream() as stream,
    ):
        said.append(stream.append(client.session(fresh_id()), user("a")).exception(60))
    assert all(isinstance(each, errors.UnauthenticatedError) for each in said)


def test_a_key_does_not_show(served: Served) -> None:
    key = make_key(served.database_url)
    with Client(served.address, api_key=key) as client:
        shown = [repr(client), repr(client.session("s")), repr(client.__dict__), str(client.wire)]
    assert not [each for each in shown if key in each]
