"""Signed heads: what no chain can find is found with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.integrity.attacker import Attacker, rehashed
from tests.integrity.conftest import fill
from tests.integrity.test_rows import reworded
from tests.served import Served

TABLES = ("events", "checkpoints", "tracking", "sessions", "session_terms", "lineage")


@dataclass
class Anchored:
    """A service that signs, its user, and where the user keeps keys and anchors."""

    served: Served
    folder: Path
    user: Shell

    @property
    def key(self) -> Path:
        return self.folder / "signing.pem"

    @property
    def file(self) -> Path:
        return self.folder / "anchors.jsonl"

    @property
    def attacker(self) -> Attacker:
        return Attacker(self.served.database_url)

    def anchor(self, *more: str) -> list[dict[str, Any]]:
        """Anchor what is new, and return every line of the file."""
        self.user.ok("anchor", *more, "--to", str(self.file))
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def verify(self, *more: str, key: Path | None = None) -> tuple[int, str]:
        """Verify with the anchors; return the exit code and what was printed."""
        public = f"{key or self.key}.pub"
        known = ("--anchors", str(self.file), "--public-key", public)
        result = self.user.run("verify", *known, *more)
        return result.exit_code, result.stdout


@pytest.fixture
def anchored(serve: Callable[..., Served], backend: str, tmp_path: Path) -> Anchored:
    """A service with a signing key."""
    key = tmp_path / "signing.pem"
    Shell("").ok("signing-key", str(key))
    served = serve(backend, FOLDLOG_SIGNING_KEY_FILE=str(key))
    return Anchored(served, tmp_path, Shell(served.address))


def test_whatever_the_service_itself_does_goes_on_from_the_anchors(anchored: Anchored) -> None:
    user = anchored.user
    kept, deleted, compacted = fill(user), fill(user), fill(user)
    assert [line["version"] for line in anchored.anchor()] == [7, 7, 7]
    user.ok("append", kept, "one more")
    fork = user.ok("fork", kept, "--at", "2").strip()
    user.ok("delete", deleted)
    user.ok("replace", compacted, "0", "4", "short")
    user.ok("snapshot", compacted)
    code, printed = anchored.verify()
    assert code == 0, printed
    assert printed.count("it goes on from its anchor") == 3
    anchored.served.restart()
    lines = anchored.anchor()
    assert sorted(line["session_id"] for line in lines[3:]) == sorted(
        [kept, fork, deleted, compacted]
    )
    assert anchored.verify("--all")[0] == 0
    assert anchored.anchor() == lines


def test_an_erased_session_still_goes_on_from_its_anchor(anchored: Anchored) -> None:
    erased, _ = fill(anchored.user), fill(anchored.user)
    anchored.anchor()
    anchored.user.ok("erase", erased)
    code, printed = anchored.verify("--all")
    assert code == 0, printed
    assert printed.count("it goes on from its anchor") == 2
    anchored.served.terminate()
    anchored.attacker.cut(erased, 6)
    anchored.served.start()
    code, printed = anchored.verify()
    assert code == 1
    assert "its end was cut off, or the store rolled back" in printed


def cut(attacker: Attacker, session: str) -> None:
    attacker.cut(session, 6)


def gone(attacker: Attacker, session: str) -> None:
    attacker.cut(session, 1)


def written_anew(attacker: Attacker, session: str) -> None:
    rows = attacker.rows(session)
    attacker.put(session, *rehashed(session, [*rows[:3], reworded(rows[3]), *rows[4:]]))


def cut_and_written_on(attacker: Attacker, session: str) -> None:
    """Cut the end off and put as many rows there as there were."""
    rows = attacker.rows(session)
    attacker.put(session, *rehashed(session, [*rows[:5], *map(reworded, rows[5:])]))


@pytest.mark.parametrize(
    ("edit", "departure"),
    [
        (cut, "and has 5 now: its end was cut off, or the store rolled back"),
        (gone, "and has 0 now: its end was cut off, or the store rolled back"),
        (written_anew, "the log was written anew"),
        (cut_and_written_on, "the log was written anew"),
    ],
    ids=["tail cut", "every row deleted", "written anew", "tail cut and written on"],
)
def test_what_no_chain_finds_is_found_by_an_anchor(
    edit: Callable[[Attacker, str], None], departure: str, anchored: Anchored
) -> None:
    session, other = fill(anchored.user), fill(anchored.user)
    anchored.anchor()
    anchored.served.terminate()
    edit(anchored.attacker, session)
    anchored.served.start()
    code, printed = anchored.verify()
    assert code == 1
    assert f"✗ {session}: it was anchored" in printed
    assert departure in printed
    assert f"✓ {other}: it goes on from its anchor" in printed


def test_a_log_that_was_written_anew_is_intact_to_its_chain_alone(anchored: Anchored) -> None:
    session = fill(anchored.user)
    anchored.served.terminate()
    written_anew(anchored.attacker, session)
    anchored.served.start()
    assert anchored.user.json("verify", session)["intact"]
    shown = anchored.user.ok("show", session)
    assert "MESSAGE 2" in shown


def test_a_store_that_was_rolled_back_is_found(anchored: Anchored) -> None:
    session = fill(anchored.user)
    anchored.anchor()
    old = {table: saved(anchored.attacker, table) for table in TABLES}
    anchored.user.ok("append", session, "the newest")
    new = fill(anchored.user)
    anchored.anchor()
    anchored.served.terminate()
    for table, rows in old.items():
        restore(anchored.attacker, table, rows)
    anchored.served.start()
    assert anchored.user.json("verify", session)["intact"]
    code, printed = anchored.verify()
    assert code == 1
    assert f"✗ {session}: it was anchored with 8 rows" in printed
    assert f"✗ {new}: it was anchored" in printed


def saved(attacker: Attacker, table: str) -> list[tuple[Any, ...]]:
    return attacker.sql(f"SELECT * FROM foldlog_{table}")


def restore(attacker: Attacker, table: str, rows: list[tuple[Any, ...]]) -> None:
    attacker.sql(f"DELETE FROM foldlog_{table}")
    for row in rows:
        marks = ", ".join(["%s"] * len(row))
        attacker.sql(f"INSERT INTO foldlog_{table} VALUES ({marks})", *row)


ONE_STORE = pytest.mark.parametrize("backend", ["sqlite-memory"], indirect=True)


@pytest.mark.parametrize("backend", ["sqlite-file"], indirect=True)
def test_after_a_rotation_both_keys_are_accepted_and_one_is_not_enough(anchored: Anchored) -> None:
    fill(anchored.user)
    anchored.anchor()
    rotated = anchored.folder / "rotated.pem"
    anchored.user.ok("signing-key", str(rotated))
    anchored.served.set_environment(FOLDLOG_SIGNING_KEY_FILE=str(rotated))
    anchored.served.restart("graceful")
    fill(anchored.user)
    anchored.anchor()
    code, printed = anchored.verify(key=rotated)
    assert code == 1
    assert "line 1, is signed by a key that was not given" in printed
    assert anchored.verify("--public-key", f"{anchored.key}.pub", key=rotated)[0] == 0
    both = anchored.folder / "both.pub"
    both.write_text("".join(Path(f"{each}.pub").read_text() for each in (anchored.key, rotated)))
    assert anchored.verify(key=both.with_suffix(""))[0] == 0


@ONE_STORE
def test_without_a_public_key_the_one_of_the_service_counts(anchored: Anchored) -> None:
    fill(anchored.user)
    anchored.anchor()
    anchored.user.ok("verify", "--anchors", str(anchored.file))


@ONE_STORE
def test_a_torn_last_line_is_written_again(anchored: Anchored) -> None:
    fill(anchored.user)
    lines = anchored.anchor()
    with anchored.file.open("a") as file:
        file.write('{"tenant":"defau')
    new = fill(anchored.user)
    again = anchored.anchor()
    assert again[:1] == lines
    assert [line["session_id"] for line in again[1:]] == [new]


@ONE_STORE
def test_one_session_is_anchored_to_stdout(anchored: Anchored) -> None:
    session = fill(anchored.user)
    fill(anchored.user)
    (line,) = anchored.user.ok("anchor", session).splitlines()
    document = json.loads(line)
    assert document["session_id"] == session
    assert document["chain"] == anchored.user.json("verify", session)["chain"]
    assert (document["version"], document["next_seq"], "cursor" in document) == (7, 6, False)


def test_a_damaged_newest_row_is_not_anchored_and_the_others_are(anchored: Anchored) -> None:
    session, other = fill(anchored.user), fill(anchored.user)
    attacker = anchored.attacker
    row = attacker.rows(session)[-1]
    attacker.put(session, reworded(row))
    result = anchored.user.run("anchor", "--to", str(anchored.file))
    assert result.exit_code == 1
    assert f"{session} is not anchored: it does not match its commitment" in result.stderr
    lines = [json.loads(line) for line in anchored.file.read_text().splitlines()]
    assert [line["session_id"] for line in lines] == [other]


@ONE_STORE
def test_the_key_is_in_no_log_and_no_answer(anchored: Anchored) -> None:
    fill(anchored.user)
    anchored.anchor()
    secret = anchored.key.read_text().splitlines()[1]
    said = [anchored.served.output_tail(), anchored.file.read_text()]
    assert not any(secret in each for each in said)


def test_a_service_without_a_key_says_so(user: Shell) -> None:
    result = user.run("anchor")
    assert result.exit_code == 2
    assert "foldlog signing-key FILE" in result.stderr
