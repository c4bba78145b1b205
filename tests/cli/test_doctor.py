"""Doctor: what is wrong, why it matters, what to do; and nothing is written."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from foldlog import compression
from foldlog.cli.doctor import Finding, Severity, findings
from foldlog.cli.doctor.environment import packages, python
from foldlog.cli.doctor.environment import settings as looked_at
from foldlog.cli.doctor.postgres import postgres
from foldlog.cli.doctor.service import service
from foldlog.cli.doctor.sqlite import filesystem_of, sqlite_file
from foldlog.settings import Settings

from tests.cli.shell import Shell
from tests.conftest import Servers
from tests.encryption.keys import master_key
from tests.postgres import another_server, database, empty_database, server, service_url
from tests.served import Served

NOWHERE = "127.0.0.1:1"


def bad(findings: Iterator[Finding]) -> list[Finding]:
    """Return the findings that are warnings or faults."""
    return [each for each in findings if each.severity in (Severity.WARNING, Severity.FAULT)]


def only(findings: Iterator[Finding]) -> Finding:
    """Return the one warning or fault, which says why and what to do."""
    (finding,) = bad(findings)
    assert finding.why
    assert finding.fix
    return finding


@pytest.fixture
def file(servers: Servers) -> Path:
    """A database file that a service filled and left."""
    served = servers.fresh("sqlite-file")
    shell = Shell(served.address)
    shell.ok("create", "s")
    shell.ok("append", "s", "a message that stands in the file")
    served.terminate()
    return Path(served.database_url.removeprefix("sqlite:///"))


def state_of(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file()
    }


def test_this_setup_is_sound(file: Path, shell: Shell) -> None:
    file.chmod(0o600)
    result = shell.run("doctor", "--database-url", f"sqlite:///{file}")
    assert result.exit_code == 0
    assert "SQLite finds it whole" in result.stdout
    assert result.stdout.endswith("Nothing is wrong.\n")


def with_keys(*key_ids: str) -> Settings:
    """Return settings with these master keys."""
    return Settings(master_keys=" ".join(map(master_key, key_ids)))


def encrypting(servers: Servers, backend: str) -> str:
    """Return the URL of a database that a service has encrypted under a master key."""
    served = servers.fresh(backend, {"FOLDLOG_MASTER_KEYS": master_key("first")})
    Shell(served.address).ok("create", "s")
    served.terminate()
    return served.database_url


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
def test_a_master_key_that_is_missing_is_named(servers: Servers, backend: str) -> None:
    url = encrypting(servers, backend)

    def of_keys(settings: Settings) -> list[Finding]:
        found = findings(replace(settings, database_url=url), NOWHERE)
        return [each for each in found if each.subject == "encryption"]

    assert [each.severity for each in of_keys(with_keys("first"))] == [Severity.OK]
    for settings in (Settings(), with_keys("second")):
        missing = only(iter(of_keys(settings)))
        assert (missing.severity, "'first' is missing" in missing.what) == (Severity.FAULT, True)
    allowed = replace(with_keys("second"), allow_missing_master_keys=True)
    assert only(iter(of_keys(allowed))).severity == Severity.WARNING
    both = of_keys(with_keys("second", "first"))
    assert [each.severity for each in both] == [Severity.OK] * 2
    assert "still needs first" in both[1].what


@pytest.mark.parametrize("backend", ["sqlite-file", "postgres"])
def test_compressed_rows_that_cannot_be_read_are_counted(
    servers: Servers, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = servers.fresh(backend, {"FOLDLOG_COMPRESSION": "zstd"})
    shell = Shell(served.address)
    shell.ok("create", "s")
    shell.ok("append", "s", "a message that is said again. " * 20)
    served.terminate()

    def told(way: str = "none") -> list[Finding]:
        settings = Settings(database_url=served.database_url, compression=way)
        return [each for each in findings(settings, NOWHERE) if each.subject == "compression"]

    assert [each.severity for each in told()] == [Severity.OK]
    on = told("zstd")
    assert [each.severity for each in on] == [Severity.OK] * 2
    assert on[1].what == "1 of the newest 2 rows are compressed, and can be read"
    monkeypatch.setattr(compression, "_of_thread", threading.local())
    monkeypatch.setitem(sys.modules, "zstandard", None)
    lost = only(iter(told()))
    assert (lost.severity, "1 of those cannot be read" in lost.what) == (Severity.FAULT, True)
    assert "foldlog[zstd]" in lost.fix
    assert "foldlog[zstd]" in only(iter(told("zstd"))).what


def test_master_keys_that_cannot_be_used_are_a_fault_and_are_not_told(tmp_path: Path) -> None:
    settings = Settings(
        database_url=f"sqlite:///{tmp_path / 'new.db'}", master_keys="first:c2VjcmV0"
    )
    told = [each for each in findings(settings, NOWHERE) if each.subject == "encryption"]
    assert "is not ID:BASE64" in only(iter(told)).what
    assert "c2VjcmV0" not in str(told)


def test_a_fault_is_a_finding_for_programs_too(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "f").write_text("something else")
    line = ("doctor", "--database-url", f"sqlite:///{tmp_path / 'f'}")
    assert shell.run(*line).exit_code == 1
    import json

    result = shell.run(*line, "--json")
    assert result.exit_code == 1
    faults = [f for f in json.loads(result.stdout)["findings"] if f["severity"] == "fault"]
    assert [fault["subject"] for fault in faults] == ["database"]
    assert "is not a SQLite database" in faults[0]["what"]


def test_nothing_is_written_to_a_file_at_rest(file: Path) -> None:
    before = state_of(file.parent)
    assert bad(sqlite_file(file)) == []
    assert state_of(file.parent) == before


def test_nothing_is_written_to_a_file_in_use(servers: Servers) -> None:
    served = servers.fresh("sqlite-file")
    Shell(served.address).ok("create", "s")
    Shell(served.address).ok("sessions")  # so that the index has written what it owed
    file = Path(served.database_url.removeprefix("sqlite:///"))
    before = state_of(file.parent)
    assert bad(sqlite_file(file)) == []
    after = state_of(file.parent)
    served.close()
    # Readers note in the -shm file, which is a cache, where they read.
    assert {n: h for n, h in after.items() if not n.endswith("-shm")} == {
        n: h for n, h in before.items() if not n.endswith("-shm")
    }


def test_a_file_that_is_not_there_is_no_fault_and_not_made(tmp_path: Path) -> None:
    assert bad(sqlite_file(tmp_path / "new.db")) == []
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    assert "mkdir -p" in only(sqlite_file(tmp_path / "no" / "new.db")).fix


def test_a_damaged_file_is_a_fault(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    finding = only(sqlite_file(file))
    assert finding.severity is Severity.FAULT
    assert "backup" in finding.fix


def test_a_database_of_something_else_is_a_fault(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    finding = only(sqlite_file(tmp_path / "other.db"))
    assert "is a database of another application" in finding.what


def test_a_file_that_everybody_may_write_is_a_fault(file: Path) -> None:
    file.chmod(0o666)
    assert only(sqlite_file(file)).fix == f"chmod o-w {file}"


def test_an_index_far_behind_is_a_warning(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE foldlog_tracking SET notification_id = 0")
    monkeypatch.setattr("foldlog.cli.doctor.finding.INDEX_LAG_ROWS", 1)
    assert "2 rows behind" in only(sqlite_file(file)).what


def test_the_file_system_is_the_one_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("dev / ext4 rw 0 0\nhost:/x /srv nfs4 rw 0 0\nnone /srv/local tmpfs rw 0 0\n")
    found = {
        folder: filesystem_of(Path(folder), mounts)
        for folder in ("/home", "/srv/data", "/srv/local/a", "/srvx")
    }
    assert found == {
        "/home": "ext4",
        "/srv/data": "nfs4",
        "/srv/local/a": "tmpfs",
        "/srvx": "ext4",
    }


def test_a_network_file_system_is_a_fault(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldlog.cli.doctor.sqlite.filesystem_of", lambda folder: "nfs4")
    assert "network file system" in only(sqlite_file(file)).what


@pytest.fixture
def url() -> Iterator[str]:
    with database() as url:
        yield url


def on(url: str) -> Iterator[Finding]:
    return postgres(Settings(database_url=url))


def test_a_sound_postgresql_has_no_fault(url: str) -> None:
    assert bad(on(url)) == []


def test_the_services_own_user_is_told_the_same(url: str) -> None:
    found = list(on(service_url(url)))
    assert bad(iter(found)) == []
    assert any("binds foldlog_service" in each.what for each in found)


def test_an_owner_is_told_that_row_level_security_does_not_bind_it(url: str) -> None:
    (found,) = [each for each in on(url) if each.subject == "row-level security"]
    assert found.severity is Severity.NOTE
    assert "foldlog migrate --service-user" in found.fix


def test_nothing_is_written_to_postgresql(url: str) -> None:
    def written() -> object:
        with psycopg.connect(url) as connection:
            return connection.execute(
                "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_all_tables"
            ).fetchone()

    before = written()
    bad(on(url))
    assert written() == before


@pytest.mark.parametrize("scope", ["DATABASE {}", "ROLE postgres IN DATABASE {}"])
def test_synchronous_commit_off_is_a_fault(scope: str, url: str) -> None:
    name = url.rpartition("/")[2]
    server().execute(f"ALTER {scope.format(name)} SET synchronous_commit = off")
    finding = only(on(url))
    assert finding.severity is Severity.FAULT
    assert finding.what == "synchronous_commit is off"
    assert "Acknowledged events can be lost" in finding.why
    assert f"ALTER DATABASE {name} RESET synchronous_commit" in finding.fix


def test_unsafe_writes_are_faults() -> None:
    with another_server(fsync="off", full_page_writes="off") as running:
        found = [each for each in bad(on(running.url())) if each.subject == "durability"]
    assert [each.what for each in found] == ["fsync is off", "full_page_writes is off"]
    assert {each.severity for each in found} == {Severity.FAULT}


def test_a_database_without_our_schema_is_a_fault() -> None:
    with empty_database() as url:
        finding = only(on(url))
    assert (finding.subject, finding.fix) == ("schema", "Run: foldlog migrate")


def test_a_database_restored_from_a_server_that_was_further_is_a_fault(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO foldlog_events"
            " (notification_id, tenant, originator_id, originator_version, topic, state)"
            " VALUES (%s, 'default', gen_random_uuid(), 1, '', '')",
            [1 << 50],
        )
    finding = only(on(url))
    assert (finding.subject, finding.fix) == ("feed", "Run: foldlog migrate")


def test_a_transaction_that_holds_back_the_feed_is_named(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldlog.cli.doctor.feed.LONG_TRANSACTION_S", 0)
    with psycopg.connect(url, application_name="sleepy") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        finding = only(on(url))
        assert f"process {connection.info.backend_pid} (postgres, sleepy)" in finding.what
        assert "pg_terminate_backend" in finding.fix


def test_a_forgotten_prepared_transaction_is_named(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foldlog.cli.doctor.feed.LONG_TRANSACTION_S", 0)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT pg_current_xact_id()")
        connection.execute("PREPARE TRANSACTION 'lost'")
        try:
            finding = only(on(url))
        finally:
            connection.execute("ROLLBACK PREPARED 'lost'")
    assert finding.fix == "Once nobody needs it: ROLLBACK PREPARED 'lost';"


def test_a_pool_larger_than_the_server_has_room_for_is_a_warning(url: str) -> None:
    finding = only(postgres(Settings(database_url=url, pool_size=5_000)))
    assert finding.subject == "connections"


def test_a_server_that_cannot_be_reached_is_a_fault() -> None:
    finding = only(on("postgresql://127.0.0.1:1/x"))
    assert "Connection refused" in finding.what


def test_a_database_that_refuses_to_tell_leaves_the_other_looks(url: str) -> None:
    name = url.rpartition("/")[2]
    server().execute(f"CREATE ROLE blind_{name} LOGIN")
    try:
        found = [*on(url.replace("postgres@", f"blind_{name}@"))]
    finally:
        server().execute(f"DROP ROLE blind_{name}")
    assert any("refuses to tell: permission denied" in each.what for each in found)
    assert any(each.subject == "connections" for each in found)


def test_python_and_packages_fit() -> None:
    assert bad(python()) == []
    assert bad(packages(Settings(metrics_listen="127.0.0.1:0", tracing=True))) == []


def test_a_package_the_settings_need_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldlog.cli.doctor.environment.find_spec", lambda name: None)
    fixes = [f.fix for f in bad(packages(Settings(tracing=True, metrics_listen="127.0.0.1:0")))]
    assert fixes == ["pip install 'foldlog[metrics]'", "pip install 'foldlog[tracing]'"]


BEYOND = Settings(listen="0.0.0.0:1", tls_certificate_file="c")


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        (Settings(), {"FOLDLOG_DATBASE_URL": "x"}, "FOLDLOG_DATBASE_URL is no setting"),
        (Settings(check_mode="strickt"), {}, "'strickt' is unknown and means warn"),
        (Settings(listen="0.0.0.0:1", auth="keys"), {}, "listen is 0.0.0.0:1, which other"),
        (Settings(listen="0.0.0.0:1", auth="keys", allow_plaintext=True), {}, "in plaintext"),
        (Settings(listen="0.0.0.0:1", tls_certificate_file="c"), {}, "and auth is none"),
        (replace(BEYOND, allow_anonymous=True), {}, "and auth is none"),
        (Settings(metrics_listen="[::]:1"), {}, "metrics_listen is [::]:1"),
        (Settings(listen="here"), {}, "an address is HOST:PORT"),
    ],
)
def test_risky_settings_are_found(
    given: Settings, environment: dict[str, str], expected: str
) -> None:
    assert expected in only(looked_at(given, environment)).what


def test_known_variables_are_sound() -> None:
    known = {"FOLDLOG_LISTEN": "", "FOLDLOG_LIMIT_LABELS": "", "FOLDLOG_ADDRESS": "", "HOME": "/"}
    assert bad(looked_at(replace(Settings()), known)) == []
    key = {"FOLDLOG_API_KEY": "k", "FOLDLOG_API_KEY_FILE": "f"}
    assert bad(looked_at(replace(BEYOND, auth="keys"), key)) == []
    assert bad(looked_at(replace(BEYOND, tls_client_ca_file="c"), key)) == []


def test_a_running_service_is_asked_for_its_health(served_in_memory: Served) -> None:
    (finding,) = service(served_in_memory.address)
    assert (finding.severity, finding.what) == (
        Severity.OK,
        f"serving at {served_in_memory.address}",
    )


@pytest.fixture
def served_in_memory(servers: Servers) -> Served:
    return servers.shared("sqlite-memory")


def test_a_service_that_is_not_there_is_no_fault() -> None:
    (finding,) = service(NOWHERE)
    assert (finding.severity, finding.fix) == (Severity.NOTE, "Start it with: foldlog serve")


def test_a_file_that_cannot_be_written_is_a_fault(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so that the answer is given here.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert f"this user cannot write to {file}" in only(sqlite_file(file)).what
