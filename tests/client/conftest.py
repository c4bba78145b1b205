"""Clients of real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from foldlog import AsyncClient, AsyncSession, Client, Session

from tests.client.proxy import Proxy
from tests.served import Served


@pytest.fixture
def client(servers: Any) -> Iterator[Client]:
    """A client of a server that tests share."""
    with Client(servers.shared("sqlite-file").address) as client:
        yield client


@pytest.fixture
async def async_client(servers: Any) -> AsyncIterator[AsyncClient]:
    """An asyncio client of a server that tests share."""
    async with AsyncClient(servers.shared("sqlite-file").address) as client:
        yield client


@pytest.fixture
def session(client: Client) -> Session:
    """A new session."""
    return client.create()


@pytest.fixture
async def async_session(async_client: AsyncClient) -> AsyncSession:
    """A new session of the asyncio client."""
    return await async_client.create()


@pytest.fixture
def own(serve: Callable[..., Served]) -> Served:
    """A server of the test's own, to be killed."""
    return serve("sqlite-file")


@pytest.fixture
def proxy(servers: Any) -> Iterator[Proxy]:
    """A way to the shared server that can be cut."""
    with Proxy(servers.shared("sqlite-file").address) as proxy:
        yield proxy
