"""Each edit of what is derived from rows is found by `foldlog verify`, and the log stays whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from foldlog.internal.v1.storage_pb2 import Checkpoint

from tests.cli.shell import Shell
from tests.golden import small_checkpoints
from tests.integrity.attacker import Attacker
from tests.integrity.conftest import fill
from tests.served import Served

Edit = Callable[[Attacker, str], object]


def of_session(statement: str) -> Edit:
    """Return the edit of one statement, whose one parameter is the session's key."""
    return lambda attacker, session: attacker.sql(statement, attacker.key(session))


def dispatched(attacker: Attacker, session: str) -> None:
    """Let a call seem to have been dispatched."""
    attacker.sql(
        "INSERT INTO foldlog_call_ledger VALUES ('default', %s, 1, 1, %s, NULL, %s, %s, 0, 0, %s)",
        *(attacker.key(session), b"c", b"", b"", True),
    )


EDITS: dict[str, tuple[Edit, str]] = {
    "next_seq": (
        of_session("UPDATE foldlog_sessions SET next_seq = 99 WHERE aggregate_id = %s"),
        "its next_seq is 99, and by the log 6",
    ),
    "labels": (
        of_session("""UPDATE foldlog_sessions SET labels = '{"a":"2"}' WHERE aggregate_id = %s"""),
        "its labels is",
    ),
    "deleted": (
        of_session("UPDATE foldlog_sessions SET deleted = true WHERE aggregate_id = %s"),
        "its deleted is True, and by the log False",
    ),
    "tenant": (
        of_session("UPDATE foldlog_sessions SET tenant = 'other' WHERE aggregate_id = %s"),
        "its tenant is 'other'",
    ),
    "create time": (
        of_session("UPDATE foldlog_sessions SET create_s = 7 WHERE aggregate_id = %s"),
        "its create_s is 7",
    ),
    "entry": (
        of_session("DELETE FROM foldlog_sessions WHERE aggregate_id = %s"),
        "it does not list it",
    ),
    "terms": (
        of_session("DELETE FROM foldlog_session_terms WHERE aggregate_id = %s"),
        "it finds it by other labels, parents or keys than the log has",
    ),
    "calls": (dispatched, "it knows other dispatched calls of it than the log"),
}


def found(user: Shell, session: str) -> list[tuple[str, str]]:
    """Return what `foldlog verify` finds, each as part and description; it finds something."""
    result = user.run("verify", session, "--json")
    assert result.exit_code == 1, result.output
    faults = json.loads(result.stdout)["faults"]
    return [(each["part"], each["description"]) for each in faults]


def has_found(user: Shell, session: str, part: str, description: str) -> bool:
    return any(p == part and d.startswith(description) for p, d in found(user, session))


@pytest.mark.parametrize(("edit", "description"), EDITS.values(), ids=EDITS)
def test_an_edit_of_the_index_is_found(
    edit: Edit, description: str, user: Shell, attacker: Attacker, told: str
) -> None:
    edit(attacker, told)
    assert has_found(user, told, "index", description)


def test_a_forks_ancestors_in_the_index_are_compared(
    user: Shell, attacker: Attacker, told: str
) -> None:
    fork = user.ok("fork", told, "--at", "3").strip()
    assert user.json("verify", fork)["intact"]
    of_session("DELETE FROM foldlog_lineage WHERE aggregate_id = %s")(attacker, fork)
    assert found(user, fork) == [("index", "it knows other ancestors of it than the log")]
    assert user.json("verify", told)["intact"]


def test_an_end_that_was_cut_off_shows_in_the_index_too(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend)
    user, attacker = Shell(served.address), Attacker(served.database_url)
    session = fill(user)
    fill(user)
    served.terminate()
    attacker.cut(session, 6)
    served.start()
    assert has_found(user, session, "index", "its next_seq is 6, and by the log 4")


def test_every_row_of_a_listed_session_missing_is_found(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend)
    user, attacker = Shell(served.address), Attacker(served.database_url)
    session = fill(user)
    fill(user)
    served.terminate()
    attacker.cut(session, 1)
    served.start()
    assert ("log", "every row of it is missing") in found(user, session)
    assert user.run("verify", "--all").exit_code == 1


@pytest.mark.parametrize(
    ("change", "description"),
    [("+ 1000000000", "its place in the feed"), ("/ 2", "its place in the feed")],
    ids=["ahead", "back"],
)
def test_a_moved_place_of_the_index_is_found(
    change: str, description: str, serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend)
    user, attacker = Shell(served.address), Attacker(served.database_url)
    session = fill(user)
    attacker.sql(f"UPDATE foldlog_tracking SET notification_id = notification_id {change}")
    assert has_found(user, session, "index", description)


def head_forged(checkpoint: Checkpoint) -> None:
    checkpoint.head.epoch = 9


def fold_forged(checkpoint: Checkpoint) -> None:
    """Let the model see one message less."""
    checkpoint.fold.surface[-1].count -= 1


def chain_forged(checkpoint: Checkpoint) -> None:
    checkpoint.head.chain = bytes(32)


@pytest.fixture
def checkpointed(serve: Callable[..., Served], backend: str, tmp_path: Path) -> Served:
    """A service that makes a checkpoint every few rows."""
    shutil.copy(small_checkpoints.__file__, tmp_path / "sitecustomize.py")
    return serve(backend, PYTHONPATH=str(tmp_path))


def checkpoints(attacker: Attacker, session: str) -> list[tuple[int, bytes]]:
    """Return a session's checkpoints, once there are some."""
    found = attacker.sql(
        "SELECT originator_version, state FROM foldlog_checkpoints WHERE originator_id = %s"
        " ORDER BY originator_version",
        attacker.key(session),
    )
    return [(version, bytes(state)) for version, state in found]


def test_an_edit_of_a_checkpoint_is_found_there_and_in_forks(checkpointed: Served) -> None:
    user, attacker = Shell(checkpointed.address), Attacker(checkpointed.database_url)
    session = fill(user, 12)
    user.ok("rewind", session, "8")
    for number in range(9):
        user.ok("append", session, f"more {number}")
    fork = user.ok("fork", session, "--at", "21").strip()
    for number in range(22):
        user.ok("append", fork, f"more {number}")
    checkpointed.terminate()  # what was begun in the background is written by then
    made = checkpoints(attacker, session)
    assert made
    assert checkpoints(attacker, fork)
    checkpointed.start()
    for each in (session, fork):
        assert user.json("verify", each)["intact"]
    version, state = made[-1]
    for forge in (head_forged, fold_forged, chain_forged):
        checkpoint = Checkpoint.FromString(state)
        forge(checkpoint)
        store(attacker, session, version, checkpoint.SerializeToString())
        expected = ("checkpoint", f"that of {version} rows is not what the rows come to")
        assert found(user, session) == [expected], forge.__name__
    assert found(user, fork) == [expected]
    misfiled = "UPDATE foldlog_checkpoints SET tenant = %s WHERE originator_id = %s"
    store(attacker, session, version, state)
    attacker.sql(misfiled, "other", attacker.key(session))
    said = [("checkpoint", f"that of {v} rows is filed under another tenant") for v, _ in made]
    assert found(user, session) == said
    attacker.sql(misfiled, "default", attacker.key(session))
    store(attacker, session, version, b"\xff")
    assert found(user, session) == [expected]
    store(attacker, session, version, state)
    assert user.json("verify", session)["intact"]


def store(attacker: Attacker, session: str, version: int, state: bytes) -> None:
    attacker.sql(
        "UPDATE foldlog_checkpoints SET state = %s"
        " WHERE originator_id = %s AND originator_version = %s",
        state,
        attacker.key(session),
        version,
    )
