"""Storms: how far they go, and what is reported of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import postgres
from tests.cluster import Server
from tests.faults.databases import Database, fresh_database
from tests.faults.extent import Extent, extent_of
from tests.faults.outcome import Outcome, require_harm, require_nothing_wrong
from tests.faults.proxy import Proxy
from tests.postgres import another_server
from tests.served import Served

SHORT_CONTROL = "test_control"
TABLED = {"report", "control"}


def _is_storm(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return "extent" in fixtures and not item.name.startswith(SHORT_CONTROL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to a soak what its table is made of: storms and their controls."""
    if "SOAK_S" in os.environ:
        items[:] = [each for each in items if TABLED & set(getattr(each, "fixturenames", ()))]


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Write a line to the terminal, in a soak."""
    reporter: Any = request.config.pluginmanager.get_plugin("terminalreporter")
    capture: Any = request.config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None or "SOAK_S" not in os.environ:
        return lambda line: None

    def write(line: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.write_line(line)

    return write


@pytest.fixture
def extent(request: pytest.FixtureRequest, tell: Callable[[str], None]) -> Extent:
    """How far the test goes. A control is always short: harm shows soon."""
    storms = sum(map(_is_storm, request.session.items))
    name = request.node.name
    if not _is_storm(request.node):
        return Extent(extent_of(name, 1, tell).seed)
    return extent_of(name, storms, tell)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[..., list[Served]]]:
    """Start two servers of a program on one new PostgreSQL database.

    pair(program, [environment of the one, environment of the other])
    """
    with ExitStack() as stack:

        def start(
            program: str = "foldlog", environments: Sequence[Mapping[str, str]] = ({}, {})
        ) -> list[Served]:
            url = stack.enter_context(postgres.database())
            objects = {"FOLDLOG_OBJECT_DIRECTORY": str(tmp_path / "objects")}
            servers = []
            for name, environment in zip(("one", "two"), environments, strict=True):
                (tmp_path / name).mkdir()
                served = Served(url, tmp_path / name, objects | dict(environment), program)
                servers.append(served.start())
                stack.callback(served.close)
            return servers

        yield start


@pytest.fixture
def report(tell: Callable[[str], None]) -> Callable[[Outcome], None]:
    """Take a storm's outcome: report(outcome) fails if anything is wrong."""

    def take(outcome: Outcome) -> None:
        tell(f"\n    {outcome.told()}")
        require_nothing_wrong(outcome)

    return take


@pytest.fixture
def control() -> Callable[[Outcome], None]:
    """Take the outcome of a storm without its safeguard: control(outcome) fails if all is well."""
    return require_harm


@pytest.fixture(scope="session")
def breakable() -> Iterator[Server]:
    """A PostgreSQL server that may be killed and misconfigured."""
    with another_server() as server:
        yield server


@pytest.fixture
def database(breakable: Server) -> Iterator[Database]:
    """A database of the server that may be killed, which has its own settings again."""
    for statement in ("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()"):
        breakable.execute(statement)
    with fresh_database(breakable) as database:
        yield database


@pytest.fixture
def proxy(database: Database) -> Iterator[Proxy]:
    """The way to the database."""
    with Proxy(database.server.port) as proxy:
        yield proxy
