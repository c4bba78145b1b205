"""Served processes per store, and the last line that says what was skipped."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.contract.calls import Calls
from tests.encryption.keys import MASTER_KEY
from tests.kept import Bucket, Directory, Kept, bucket_server
from tests.served import Served

BACKENDS = ("sqlite-memory", "sqlite-file", "postgres", "postgres-partitioned")
DURABLE_BACKENDS = BACKENDS[1:]
# What runs through a pooler in transaction mode as well.
POOLED = ("postgres-pooled",)
POOLED_CORE = {
    f"test_{name}"
    for name in ("append", "fork", "reads", "request_ids", "restore", "rewind", "stream", "watch")
}
# What a service that encrypts is held to as well.
ENCRYPTED = "-encrypted"
ENCRYPTED_BACKENDS = (f"sqlite-file{ENCRYPTED}", f"postgres{ENCRYPTED}")
PARTITIONED = "postgres-partitioned"
VARIANTS = (PARTITIONED, *POOLED, *ENCRYPTED_BACKENDS)
ENCRYPTED_CORE = {
    *(f"test_{name}" for name in ("append", "attachments", "export_import", "feed", "fork")),
    *(f"test_{name}" for name in ("header_texts", "recorded_requests", "request_ids", "restore")),
    *(f"test_{name}" for name in ("erase", "sessions", "snapshot", "verify", "watch")),
}
# What is decided above the store, whichever way its tables are cut: on plain tables is enough.
UNPARTITIONED = {
    *(
        f"test_{name}"
        for name in ("begin_step", "build_request", "check", "errors", "explain_request")
    ),
    *(f"test_{name}" for name in ("header", "limits", "record_header", "recorded_requests")),
    *(f"test_{name}" for name in ("recovery", "replace", "seed", "suggest_range", "trim")),
    *(f"test_{name}_cases" for name in ("field", "header", "recovery", "seed")),
}
# What is judged before anything is read or written: any store of its own kind is enough.
JUDGED_BEFORE = {
    *("test_a_bad_event_is_refused_by_index_and_field_and_nothing_is_stored",),
    *("test_a_bad_line_is_named_and_nothing_is_left_behind", "test_a_bad_page_is_refused"),
    *("test_a_call_without_an_id_names_the_field", "test_a_malformed_range_is_refused"),
    *("test_an_empty_batch_is_refused", "test_bad_events_are_named"),
    *("test_labels_over_a_limit_are_refused", "test_the_header_comes_first"),
    *("test_metadata_that_is_no_lossless_json_is_refused", "test_what_is_no_digest_is_refused"),
    *("test_seqs_that_do_not_ascend_are_refused", "test_what_is_no_export_is_refused"),
    *("test_what_does_not_fit_its_header_is_not_stored",),
}
# These look at the files of attachments, which hold the bytes themselves only in clear.
OF_FILES = (
    "test_a_file_holds_each_object_once",
    "test_damage_is_told_heals_and_blocks_nothing_else",
    "test_no_byte_of_a_damaged_piece_is_sent",
)
# How long an example takes says how busy the machine is, and no more.
settings.register_profile(
    "any_machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any_machine")
# Hundreds of processes of ours would each compile every module anew, were they not to keep what
# they compiled: that took two fifths of the time of a command.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
SERVED = pytest.StashKey[list[Served]]()


class Servers:
    """One server process per backend, started when first asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._databases = ExitStack()
        self._count = itertools.count()
        self._shared: dict[str, Served] = {}
        self._all: list[Served] = []
        self._buckets: str | None = None

    def shared(self, backend: str) -> Served:
        """Return the running server of a backend, which tests share."""
        served = self._shared.get(backend)
        if served is None or served.process.poll() is not None:
            served = self._shared[backend] = self.fresh(backend)
        return served

    def attacked(self, backend: str, rows: str = "any") -> Served:
        """Return the running server of a backend on whose rows tests may do what they like."""
        name = f"attacked-{rows}-{backend}"
        served = self._shared.get(name)
        if served is None or served.process.poll() is not None:
            served = self._shared[name] = self.fresh(backend)
        return served

    def guarded(self, backend: str) -> Served:
        """Return the running server of a backend that asks for keys, which tests share."""
        served = self._shared.get(f"guarded-{backend}")
        if served is None or served.process.poll() is not None:
            served = self.fresh(backend, {"FOLDLOG_AUTH": "keys"})
            self._shared[f"guarded-{backend}"] = served
        return served

    def fresh(
        self,
        backend: str,
        environment: dict[str, str] | None = None,
        program: str = "foldlog",
        url: str = "",
    ) -> Served:
        """Start a server on a database of its own, or on one that was made for it."""
        directory = self._directory / f"{backend}-{next(self._count)}"
        directory.mkdir()
        url = url or self._url(backend.removesuffix(ENCRYPTED), directory)
        served = Served(url, directory, self._objects(backend, directory), program)
        if backend.endswith(ENCRYPTED):
            served.set_environment(FOLDLOG_MASTER_KEYS=MASTER_KEY)
        served.set_environment(**environment or {})
        self._all.append(served)
        return served.start()

    def _url(self, backend: str, directory: Path) -> str:
        if backend == "sqlite-memory":
            return "sqlite:///:memory:"
        if backend in {"sqlite-file", "bucket"}:
            return f"sqlite:///{directory / 'foldlog.db'}"
        from tests.postgres import PARTITIONS, database, service_url

        partitions = PARTITIONS if backend == "postgres-partitioned" else 0
        return service_url(self._databases.enter_context(database(partitions)))

    def _objects(self, backend: str, directory: Path) -> dict[str, str]:
        """Name a place for attachments where the service has none of its own."""
        if backend == "bucket":
            bucket = Bucket(self.bucket_server())
            return {"FOLDLOG_OBJECT_DIRECTORY": bucket.url, **bucket.environment}
        is_postgres = backend.startswith("postgres")
        return {"FOLDLOG_OBJECT_DIRECTORY": str(directory / "objects")} if is_postgres else {}

    def bucket_server(self) -> str:
        """Return the address of the server of buckets."""
        if self._buckets is None:
            self._buckets = self._databases.enter_context(bucket_server(self._directory))
        return self._buckets

    def close(self) -> None:
        """End every process, then drop their databases."""
        for served in self._all:
            served.close()
        self._databases.close()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The server processes of this run."""
    servers = Servers(tmp_path_factory.mktemp("servers"))
    yield servers
    servers.close()


def _is_meant(item: pytest.Item) -> bool:
    """Tell whether a test is to run: what a variant of a store cannot change, it runs without."""
    parameters = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    backend, name = parameters.get("backend"), item.path.stem
    if backend in VARIANTS and item.name.partition("[")[0] in JUDGED_BEFORE:
        return False
    if backend in ENCRYPTED_BACKENDS:
        return name in ENCRYPTED_CORE and not item.name.startswith(OF_FILES)
    if backend == PARTITIONED:
        return name not in UNPARTITIONED
    return backend not in POOLED or name in POOLED_CORE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is not meant to be run."""
    items[:] = filter(_is_meant, items)


@pytest.fixture(params=BACKENDS + POOLED + ENCRYPTED_BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The id of a store."""
    name: str = request.param
    return name


@pytest.fixture
def served(servers: Servers, backend: str, request: pytest.FixtureRequest) -> Served:
    """The shared server of the backend."""
    served = servers.shared(backend)
    request.node.stash.setdefault(SERVED, []).append(served)
    return served


@pytest.fixture(params=DURABLE_BACKENDS)
def guarded(servers: Servers, request: pytest.FixtureRequest) -> Served:
    """The shared server that asks for keys, on each store that keys can be made in."""
    served = servers.guarded(request.param)
    request.node.stash.setdefault(SERVED, []).append(served)
    return served


@pytest.fixture
def kept(servers: Servers, backend: str, tmp_path: Path) -> Kept:
    """A place for attachments that the test looks into: a bucket where the backend has one."""
    if backend == "bucket":
        return Bucket(servers.bucket_server())
    return Directory(tmp_path / "objects")


@pytest.fixture
def memory(servers: Servers, request: pytest.FixtureRequest) -> Served:
    """The shared server in memory, for what never gets as far as the store."""
    served = servers.shared("sqlite-memory")
    request.node.stash.setdefault(SERVED, []).append(served)
    return served


@pytest.fixture
def serve(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Callable[..., Served]]:
    """Start a server of the test's own: serve(backend, program, url=..., NAME=value, ...)."""
    mine: list[Served] = request.node.stash.setdefault(SERVED, [])

    def start(
        backend: str = "sqlite-memory",
        program: str = "foldlog",
        url: str = "",
        **environment: str,
    ) -> Served:
        mine.append(servers.fresh(backend, environment, program, url))
        return mine[-1]

    yield start
    for served in mine:
        served.close()


@pytest.fixture
def stub(served: Served) -> Any:
    """The generated stub of the backend's shared server."""
    return served.stub


@pytest.fixture
def log(stub: Any) -> Calls:
    """A new session on the backend's shared server."""
    return Calls.create(stub)


@pytest.fixture
def new_log(stub: Any) -> Callable[..., Calls]:
    """Make further sessions: new_log(session_id=..., labels=...)."""
    return lambda **fields: Calls.create(stub, **fields)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the servers of a failed test wrote."""
    report = yield
    if report.failed:
        for served in item.stash.get(SERVED, []):
            report.sections.append(("server output", served.output_tail()))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """End the run with one line that says what was skipped, and why."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        reporter.write_line(_skips(reporter.stats.get("skipped", [])))


def _skips(reports: list[Any]) -> str:
    if not reports:
        return "skipped: nothing"
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    told = "; ".join(f"{count} because {reason}" for reason, count in sorted(reasons.items()))
    return f"skipped: {told}"
