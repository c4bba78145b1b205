"""The index made anew from the log is the one that was kept all along."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.contract.calls import Calls
from tests.contract.recovering import logs_call, unresolved
from tests.contract.said import batches, custom, replacing, result, user
from tests.contract.test_erase import audited, listed
from tests.encryption.keys import MASTER_KEY
from tests.integrity.attacker import Attacker
from tests.served import Served

TABLES = ("sessions", "session_terms", "lineage", "call_ledger", "usage", "tracking", "erasures")
SPOIL = (
    "DELETE FROM foldlog_session_terms",
    "DELETE FROM foldlog_lineage",
    "UPDATE foldlog_call_ledger SET unresolved = true",
    "UPDATE foldlog_sessions SET next_seq = 99, labels = '{}', metadata_json = '', deleted = false",
    "UPDATE foldlog_usage SET sessions = 77, bytes = 1",
)


@pytest.fixture(params=["", MASTER_KEY], ids=["in-clear", "encrypted"])
def served(serve: Callable[..., Served], backend: str, request: pytest.FixtureRequest) -> Served:
    """A server of the test's own, with and without encryption."""
    return serve(backend, FOLDLOG_MASTER_KEYS=request.param)


def index_of(attacker: Attacker) -> dict[str, list[tuple[Any, ...]]]:
    """Return what the tables of the index hold.

    Metadata is never encrypted to the same, and rows are counted anew as they are encrypted.
    """
    found = {}
    is_encrypted = bool(attacker.sql("SELECT 1 FROM foldlog_session_keys"))
    for table in TABLES:
        rows = attacker.sql(f"SELECT * FROM foldlog_{table}")
        if table == "sessions":
            rows = [(*row[:6], bool(row[6]), *row[7:]) for row in rows]
        if table == "usage" and is_encrypted:
            rows = [row[:2] for row in rows]
        found[table] = sorted(rows, key=repr)
    return found


def fill(stub: Any) -> list[Calls]:
    """Make sessions with everything that the index keeps, and return those that can be listed."""
    plain = Calls.create(stub, labels={"a": "1"}, metadata_json='{"n": 1}')
    plain.append(user("a"), custom("kind", b"", "key"))
    plain.update(set_labels={"b": "2"}, metadata_json='{"n": 2}')
    fork = plain.fork(0)
    calling = Calls.create(stub)
    calling.append(user("a"), logs_call("c1"), result("r", "c1"), logs_call("c2"))
    calling.rewind(0)
    calling.append(logs_call("c3"), result("r", "c3"), logs_call("c4"))
    calling.append(replacing(user("short"), 0, 7))
    calling.snapshot()
    for end in (Calls.delete, Calls.erase):
        gone = Calls.create(stub, labels={"a": "1"})
        gone.append(custom("kind", b"", "key"), logs_call("c5"))
        end(gone)
    return [plain, fork, calling]


def reindexed(served: Served) -> str:
    environment = {"FOLDLOG_MASTER_KEYS": served.process_environment()["FOLDLOG_MASTER_KEYS"]}
    result = Shell("").run("reindex", "--database-url", served.database_url, **environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_the_same_as_the_one_that_was_kept(served: Served) -> None:
    logs = fill(served.stub)
    waiting = unresolved(logs[2])
    served.terminate()
    attacker = Attacker(served.database_url)
    kept = index_of(attacker)
    for statement in SPOIL:
        attacker.sql(statement)
    # What results resolved whose bodies are dropped, nobody but the ledger knows.
    attacker.sql("UPDATE foldlog_call_ledger SET unresolved = false WHERE kind = 2")
    served.start()
    assert Shell(served.address).run("verify", logs[0].session_id).exit_code == 1
    served.terminate()
    assert reindexed(served).startswith("made the index of ")
    assert index_of(attacker) == kept
    served.start()
    assert unresolved(logs[2]) == waiting
    assert [each.verify().intact for each in logs] == [True] * 3
    assert Shell(served.address).run("verify", "--all").exit_code == 0


def test_on_postgres_the_service_goes_on_meanwhile(serve: Callable[..., Served]) -> None:
    served = serve("postgres", FOLDLOG_MASTER_KEYS="")
    attacker = Attacker(served.database_url)
    fill(served.stub)
    old = Calls.create(served.stub)
    for batch in batches([user(str(i)) for i in range(3_000)]):
        old.append(*batch)
    logs = [Calls.create(served.stub) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(grow, log) for log in logs]
        for _ in range(3):
            reindexed(served)
        for each in writing:
            each.result()
    assert listed(served.stub) >= {each.session_id for each in (old, *logs)}
    assert [audited(each).intact for each in (old, *logs)] == [True] * 5
    counted = attacker.sql("SELECT sessions, bytes FROM foldlog_usage")
    Shell("").ok("quotas", "recount", "--database-url", served.database_url)
    assert attacker.sql("SELECT sessions, bytes FROM foldlog_usage") == counted


def grow(log: Calls) -> None:
    for number in range(100):
        log.append(user(str(number)))


def test_on_sqlite_a_service_that_runs_is_in_the_way(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-file")
    result = Shell("").run("reindex", "--database-url", served.database_url)
    assert result.exit_code != 0
    assert "in use" in result.output or "another process" in result.output, result.output
